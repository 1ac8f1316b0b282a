package dynamo

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// skipOnLocal skips a test that asks no server, in a run for DynamoDB Local.
func skipOnLocal(t testing.TB) {
	t.Helper()
	if dynamotest.OnLocal(t) {
		t.Skip("it asks no server: make test runs it")
	}
}

// storeChange changes a store before it is opened: its options, or its seams.
type storeChange = func(*Store)

// newStore returns a store with changes. Its items expire once they are full: in most tests the ttl is to
// show what the balances need.
func newStore(api wire.API, table string, changes ...storeChange) *Store {
	s := New(api, table)
	s.seams.KeepIdle = 0
	for _, change := range changes {
		change(s)
	}
	return s
}

// option returns an option as a change. The option must be valid.
func option(opt Option) storeChange {
	return func(s *Store) {
		if err := opt(&s.options); err != nil {
			panic(err)
		}
	}
}

func positive(n int64) bool { return n > 0 }

func negative(n int64) bool { return n < 0 }
