package operator

import "github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

// CallError explains the error of a call on table that other code made. It returns a *store.SetupError that
// says what to do, or a *store.UnavailableError if DynamoDB does not answer.
func CallError(table string, err error) error { return wire.CallError(table, err) }
