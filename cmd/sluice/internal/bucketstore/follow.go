package bucketstore

import (
	"context"

	"github.com/sluice-go/sluice/runtime/store"
)

// Followed is an entity that is put on plans, as found from one at or below it.
type Followed struct {
	Of    string // that entity, or the last one on the way to it, whose parent is not stored
	Found bool   // else calls alone say whose plan it is
	store.Member
}

// Follow goes from entity, of a kind, by stored parents to the one of kind to.
func Follow(
	ctx context.Context, members store.MemberStore, kinds []store.Kind, entity string, kind, to int,
) (f Followed, err error) {
	f.Of = entity
	for f.Member, _, err = members.Get(ctx, f.Of); err == nil && kind != to; kind = kinds[kind].Parent {
		if f.Parent == "" {
			return f, nil
		}
		f.Of = f.Parent
		f.Member, _, err = members.Get(ctx, f.Of)
	}
	f.Found = err == nil
	return f, err
}
