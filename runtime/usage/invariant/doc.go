// Package invariant holds usage to what it promises: the sum of the windows is the sum of what was granted.
// It has only tests.
//
// Callers of several processes acquire, settle, release and are denied, limits change, buckets expire and
// shards split, while whoever reads the stream is killed, starts again, has a twin, and loses requests and
// replies. Then five books have to agree: what callers were told, what the buckets consumed, those too that
// are gone, the table's stream, the hours and the days.
//
//	SLUICE_DYNAMODB=local go test ./runtime/usage/invariant -v
package invariant
