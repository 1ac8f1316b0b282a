// Package invariant holds usage to what it promises: the sum of the windows is the sum of what was granted.
// Not for import: it has only tests.
//
// Callers of several processes acquire, settle, release and are denied. Limits change, buckets expire and
// shards split. The reader of the stream is killed, starts again, has a twin, and loses requests and replies.
// Then five accounts have to agree: the callers' results, the consumption of the buckets (expired ones
// included), the table's stream, the hours and the days.
//
//	SLUICE_DYNAMODB=local go test ./runtime/usage/invariant -v
package invariant
