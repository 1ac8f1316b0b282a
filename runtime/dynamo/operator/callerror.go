package operator

import "github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

// CallError returns what err, of a call on table by somebody else's code, means to who asked for it: a *store.SetupError that
// says what to do, or a *store.UnavailableError when DynamoDB does not answer.
func CallError(table string, err error) error { return wire.CallError(table, err) }
