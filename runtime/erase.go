package runtime

import (
	"context"

	"github.com/sluice-go/sluice/runtime/store"
)

// Erased counts what Erase deleted of an entity, or would delete.
type Erased = store.Erased

// EraseOption changes what Erase does.
type EraseOption func(*store.Erasing)

// DryRun deletes nothing and counts.
func DryRun() EraseOption { return func(e *store.Erasing) { e.DryRun = true } }

// LeaveChildren erases an entity although others name it as their parent. Their links stay.
func LeaveChildren() EraseOption { return func(e *store.Erasing) { e.LeaveChildren = true } }

// Erase deletes all that the store keeps of entity: its buckets, overrides, regional quotas, usage and the
// link to its parent. It returns what it deleted, also with an error. Each step may be repeated, so after an
// error another Erase goes on.
//
// An entity with children is an *InvalidError that names them, unless LeaveChildren is given. The list of
// children may be a moment behind. Other errors are the store's.
//
// Erase does not reach backups, the table's stream, exported usage and snapshots of regional sync. A process
// that caches the entity's link, overrides or bucket may store them anew if it serves another call, as may an
// aggregator or regional sync. So calls for the entity end first; an Erase after WithCacheTTL removes the
// rest. On Redis it visits all keys by SCAN.
func (e *Entities) Erase(ctx context.Context, entity Entity, opts ...EraseOption) (Erased, error) {
	_, stored, err := e.core.nearest("", entity)
	if err != nil {
		return Erased{}, err
	}
	var how store.Erasing
	for _, opt := range opts {
		if opt != nil {
			opt(&how)
		}
	}
	return e.core.session.Members().Erase(ctx, stored, how)
}
