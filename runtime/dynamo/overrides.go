package dynamo

import (
	"context"
	"iter"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Overrides reads and writes the config items of one table. It implements runtime.OverrideStore.
type Overrides struct {
	api   API
	table string
	now   func() time.Time
}

// NewOverrides returns the overrides in table. now dates their versions. It does no I/O.
func NewOverrides(client API, table string, now func() time.Time) *Overrides {
	return &Overrides{api: client, table: table, now: now}
}

// Overrides implements runtime.Session.
func (s *session) Overrides() runtime.OverrideStore {
	return NewOverrides(s.api, s.table, s.env.Clock.Now)
}

// Get implements runtime.OverrideStore.
func (o *Overrides) Get(ctx context.Context, spec *runtime.Spec, at ...string) ([]runtime.Stored, error) {
	panic("to come")
}

// Set implements runtime.OverrideStore.
func (o *Overrides) Set(ctx context.Context, spec *runtime.Spec, s runtime.Stored) (runtime.Revision, error) {
	panic("to come")
}

// List implements runtime.OverrideStore.
func (o *Overrides) List(ctx context.Context, spec *runtime.Spec) iter.Seq2[runtime.Stored, error] {
	panic("to come")
}

// levelKey is the key of the config item of resource at a level.
func levelKey(resource, at string) codec.Item { panic("to come") }

// decodeLevel reads a config item, which may be empty. ver is its version in ms, 0 for none.
func decodeLevel(spec *runtime.Spec, at string, item codec.Item) (stored runtime.Stored, ver int64, err error) {
	panic("to come")
}
