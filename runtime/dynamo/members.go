package dynamo

import (
	"context"
	"iter"

	"github.com/sluice-go/sluice/runtime"
)

// Members reads and writes the entity items of one table. It implements runtime.MemberStore.
type Members struct {
	api   API
	table string
}

// NewMembers returns the entities in table. It does no I/O.
func NewMembers(client API, table string) *Members { return &Members{api: client, table: table} }

// Members implements runtime.Session.
func (s *session) Members() runtime.MemberStore { return NewMembers(s.api, s.table) }

// Member implements runtime.Session.
func (s *session) Member(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	panic("to come")
}

// Put implements runtime.MemberStore.
func (e *Members) Put(ctx context.Context, m runtime.Member) error { panic("to come") }

// Get implements runtime.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m runtime.Member, found bool, err error) {
	panic("to come")
}

// Delete implements runtime.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error { panic("to come") }

// Children implements runtime.MemberStore.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	panic("to come")
}
