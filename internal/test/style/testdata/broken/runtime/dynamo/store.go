// Package dynamo breaks the rules of sizes and of exported names.
package dynamo

import "example.com/broken/runtime/dynamo/internal/wire"

// Store has three methods.
type Store struct{ sender wire.Sender }

func (s *Store) a() { s.sender.Send() }
func (s *Store) b() { helper() }
func (s Store) c()  {}

// Helper is not for users.
func Helper() {
	helper()
	helper()
	helper()
	helper()
}
