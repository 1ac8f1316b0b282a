package dynamo

import "github.com/sluice-go/sluice/runtime/dynamo/internal/wire"

// storeChange changes a store before it is opened: its options, or its seams.
type storeChange = func(*Store)

// newStore returns a store with changes.
func newStore(api wire.API, table string, changes ...storeChange) *Store {
	s := New(api, table)
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
