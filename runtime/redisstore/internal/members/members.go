// Package members keeps what is stored of entities: a hash for each, and sets of the children that they have.
package members

import (
	"context"
	_ "embed"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/audit"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// childrenBatch is the number of children that one pipeline verifies.
const childrenBatch = 100

// Fields of an entity's hash.
const (
	ParentField  = "parent"
	CascadeField = "cascade"
	AnchorField  = "anchor" // of the entity's calendar: the start of its billing, in ms
	ZoneField    = "zone"
	PlanField    = "plan" // the entity's plan, "" for none
	VersionField = "pv"   // of the last change of its plan, ms
)

// planScript puts an entity on a plan.
//
//go:embed plan.lua
var planScript string

// Members reads and writes the entities under one prefix. It implements store.MemberStore. The client's
// retries apply: a write that is repeated changes nothing. It changes its own fields of an entity's hash
// alone. It is safe for concurrent use.
type Members struct {
	DB      *database.DB
	Changed func(entity string) // called after each write, failed ones too
}

// Put implements store.MemberStore. It adds the entity to its parent's children first, so that it is not
// missing there if Put fails halfway. It adds it once more at the end: a concurrent Put with another parent
// may have removed it meanwhile.
func (e *Members) Put(ctx context.Context, m store.Member) error {
	defer e.Changed(m.Entity)
	old, _, err := e.Get(ctx, m.Entity)
	if err != nil {
		return err
	}
	addChild := func() error {
		if m.Parent == "" {
			return nil
		}
		children := e.DB.Keys.Children(m.Parent)
		return database.OnKey(children, e.DB.Client.SAdd(ctx, children, m.Entity).Err())
	}
	cascade := "0"
	if m.Cascade {
		cascade = "1"
	}
	for _, step := range []func() error{
		addChild,
		func() error {
			return e.DB.Client.HSet(ctx, e.DB.Keys.Entity(m.Entity), ParentField, m.Parent, CascadeField,
				cascade).Err()
		},
		addChild,
	} {
		if err := step(); err != nil {
			return e.DB.OperationError(ctx, err)
		}
	}
	if old.Parent == m.Parent {
		return nil
	}
	return e.removeChild(ctx, m.Entity, old.Parent)
}

// removeChild removes entity from parent's children. It adds it again if a concurrent write has made parent
// its parent meanwhile.
func (e *Members) removeChild(ctx context.Context, entity, parent string) error {
	if parent == "" {
		return nil
	}
	children := e.DB.Keys.Children(parent)
	if err := e.DB.Client.SRem(ctx, children, entity).Err(); err != nil {
		return e.DB.OperationError(ctx, database.OnKey(children, err))
	}
	m, _, err := e.Get(ctx, entity)
	if err != nil || m.Parent != parent {
		return err
	}
	return e.DB.OperationError(ctx, e.DB.Client.SAdd(ctx, children, entity).Err())
}

// Get implements store.MemberStore.
func (e *Members) Get(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	key := e.DB.Keys.Entity(entity)
	hash, err := e.DB.Client.HGetAll(ctx, key).Result()
	if err != nil {
		return store.Member{}, false, e.DB.OperationError(ctx, database.OnKey(key, err))
	}
	return Decode(entity, hash)
}

// Delete implements store.MemberStore.
func (e *Members) Delete(ctx context.Context, entity string) error {
	defer e.Changed(entity)
	old, _, err := e.Get(ctx, entity)
	if err != nil {
		return err
	}
	if err := e.DB.Client.HDel(ctx, e.DB.Keys.Entity(entity), ParentField, CascadeField).Err(); err != nil {
		return e.DB.OperationError(ctx, err)
	}
	return e.removeChild(ctx, entity, old.Parent)
}

// SetCalendar implements store.MemberStore.
func (e *Members) SetCalendar(ctx context.Context, entity string, since time.Time) error {
	defer e.Changed(entity)
	return e.DB.OperationError(ctx, e.DB.Client.HSet(ctx, e.DB.Keys.Entity(entity),
		AnchorField, since.UnixMilli(), ZoneField, since.Location().String()).Err())
}

// SetPlan implements store.MemberStore. It changes nothing if entity is on the plan already.
func (e *Members) SetPlan(ctx context.Context, entity, plan string, from *string) error {
	defer e.Changed(entity)
	key := e.DB.Keys.Entity(entity)
	record, err := audit.New(ctx, e.DB, key, store.Change{At: entity, After: store.PlanFields(plan)})
	if err != nil {
		return err
	}
	args := []any{plan, record.Text}
	if from != nil {
		args = append(args, *from)
	}
	keys := []string{key, record.Key}
	set, err := redis.NewScript(planScript).Run(ctx, e.DB.Client, keys, args...).Bool()
	switch {
	case err != nil:
		return e.DB.OperationError(ctx, database.OnKey(key, err))
	case !set:
		return &store.ConflictError{At: "plan of " + entity}
	}
	return nil
}

// Children implements store.MemberStore. It omits entities in the set that have another parent by now.
func (e *Members) Children(ctx context.Context, entity string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		children, err := e.DB.SetMembers(ctx, e.DB.Keys.Children(entity))
		if err != nil {
			yield("", err)
			return
		}
		for chunk := range slices.Chunk(children, childrenBatch) {
			pipe := e.DB.Client.Pipeline()
			parents := make([]*redis.SliceCmd, len(chunk))
			for i, child := range chunk {
				parents[i] = pipe.HMGet(ctx, e.DB.Keys.Entity(child), ParentField)
			}
			if err := database.Exec(ctx, pipe); err != nil {
				yield("", e.DB.OperationError(ctx, err))
				return
			}
			for i, child := range chunk {
				if parents[i].Val()[0] == entity && !yield(child, nil) {
					return
				}
			}
		}
	}
}

// Decode decodes an entity's hash. found is false if it has no field of a link; m has the entity's
// calendar and plan all the same. It fails with a *store.SetupError.
func Decode(entity string, hash map[string]string) (m store.Member, found bool, err error) {
	parent, found := hash[ParentField]
	cascade, marked := hash[CascadeField]
	if found = found || marked; found {
		m = store.Member{Entity: entity, Parent: parent, Cascade: cascade != "0"}
	}
	malformed := func(what, fields string, err error) error {
		return &store.SetupError{
			What: fmt.Sprintf("the %s of %s is malformed", what, store.Quote(entity)),
			Do:   "set it again, or delete the fields " + fields + " of the entity's hash", Err: err,
		}
	}
	if anchor, ok := hash[AnchorField]; ok {
		at, err := strconv.ParseInt(anchor, 10, 64)
		if err == nil {
			m.Since, err = store.Since(at, hash[ZoneField])
		}
		if err != nil {
			return store.Member{}, false, malformed("calendar", "anchor and zone", err)
		}
	}
	if version, ok := hash[VersionField]; ok {
		if m.PlanVersion, err = strconv.ParseInt(version, 10, 64); err != nil {
			return store.Member{}, false, malformed("plan", "plan and pv", err)
		}
		m.Plan = hash[PlanField]
	}
	return m, found, nil
}

// OnPlan yields the entities with this prefix that are on a plan, a page of keys at a time, and how many keys
// it has read for it. It visits all keys by SCAN. It ends with the first error.
func (e *Members) OnPlan(ctx context.Context, prefix, plan string) iter.Seq2[PlanPage, error] {
	return func(yield func(PlanPage, error) bool) {
		keys, err := e.DB.Scan(ctx, text.Glob(e.DB.Keys.Entity(prefix))+"*")
		if err != nil {
			yield(PlanPage{}, err)
			return
		}
		for chunk := range slices.Chunk(keys, childrenBatch) {
			pipe := e.DB.Client.Pipeline()
			plans := make([]*redis.SliceCmd, len(chunk))
			for i, key := range chunk {
				plans[i] = pipe.HMGet(ctx, key, PlanField)
			}
			if err := database.Exec(ctx, pipe); err != nil {
				yield(PlanPage{}, e.DB.OperationError(ctx, err))
				return
			}
			page := PlanPage{Read: len(chunk)}
			for i, key := range chunk {
				if plans[i].Val()[0] == plan {
					page.Entities = append(page.Entities, strings.TrimPrefix(key, e.DB.Keys.Entity("")))
				}
			}
			if !yield(page, nil) {
				return
			}
		}
	}
}

// PlanPage is a page of OnPlan.
type PlanPage struct {
	Entities []string // as stored
	Read     int      // keys of entities
}
