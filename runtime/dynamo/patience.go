package dynamo

import (
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// patience is for calls within the session.
func (s *session) patience(tries int) wire.Retrier {
	return wire.Retrier{Table: s.table, Attempts: tries, After: s.env.Clock.After, Jitter: s.jitter}
}
