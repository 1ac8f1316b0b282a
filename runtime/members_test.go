package runtime_test

import (
	"context"
	"errors"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// members is a MemberStore in memory.
type members struct {
	failure error
	known   map[string]store.Member
	asked   int
	erasing store.Erasing
}

func (m *members) Put(_ context.Context, one store.Member) error {
	m.asked++
	m.known[one.Entity] = one
	return m.failure
}

func (m *members) Get(_ context.Context, entity string) (store.Member, bool, error) {
	m.asked++
	one, ok := m.known[entity]
	return one, ok, m.failure
}

func (m *members) Delete(_ context.Context, entity string) error {
	m.asked++
	delete(m.known, entity)
	return m.failure
}

func (m *members) SetPlan(_ context.Context, entity, plan string, _ *string) error {
	m.asked++
	one := m.known[entity]
	one.Plan, one.PlanVersion = plan, one.PlanVersion+1
	m.known[entity] = one
	return m.failure
}

func (m *members) SetCalendar(_ context.Context, entity string, since time.Time) error {
	m.asked++
	one := m.known[entity]
	one.Since = since
	m.known[entity] = one
	return m.failure
}

func (m *members) Children(_ context.Context, entity string) iter.Seq2[string, error] {
	m.asked++
	return func(yield func(string, error) bool) {
		if !yield("child of "+entity, nil) {
			return
		}
		yield("", m.failure)
	}
}

func (m *members) Erase(_ context.Context, entity string, how store.Erasing) (store.Erased, error) {
	m.asked++
	m.erasing = how
	delete(m.known, entity)
	return store.Erased{Other: 1}, m.failure
}

func openEntities(t *testing.T) (*runtime.Entities, *members) {
	t.Helper()
	backend := &members{known: map[string]store.Member{}}
	lim, _ := openAs(t, &fake{members: backend}, tree(together, ofUser))
	return lim.Entities(), backend
}

func TestEntities(t *testing.T) {
	entities, backend := openEntities(t)
	ctx := t.Context()
	for _, test := range []struct {
		name   string
		entity links
		opts   []runtime.PutOption
		want   store.Member
	}{
		{"with all ancestors", typed("1", "2", "3", "4"), nil, store.Member{Entity: "user-1", Parent: "team-2",
			Cascade: true}},
		{"from the middle", typed("1", "2", "3", "4")[1:], nil, store.Member{Entity: "team-2", Parent: "project-3",
			Cascade: true}},
		{"without parent", typed("5", "", "3", "4"), nil, store.Member{Entity: "user-5", Cascade: true}},
		{"of a kind without parent", typed("1", "2", "3", "4")[3:], nil,
			store.Member{Entity: "org-4", Cascade: true}},
		{"its parent's parent is looked up", append(typed("6", "", "", "")[:1], lookedUp(ofTeam, "2")...), nil,
			store.Member{Entity: "user-6", Parent: "team-2", Cascade: true}},
		{"without cascade", typed("1", "2", "3", "4"), []runtime.PutOption{nil, runtime.NoCascade()},
			store.Member{Entity: "user-1", Parent: "team-2"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, entities.Put(ctx, test.entity, test.opts...), "")
			for _, same := range []links{test.entity, lookedUp(test.entity[0].Kind, test.entity[0].ID)} {
				got, found, err := entities.Get(ctx, same)
				check(t, err, "")
				equal(t, "found", found, true)
				equal(t, "stored", got, test.want)
			}
		})
	}
	equal(t, "entities", len(backend.known), 5)
	var children []string
	for child, err := range entities.Children(ctx, lookedUp(ofTeam, "2")) {
		check(t, err, "")
		children = append(children, child)
		break
	}
	if want := []string{"child of team-2"}; !slices.Equal(children, want) {
		t.Errorf("children %q, want %q", children, want)
	}
	erased, err := entities.Erase(ctx, lookedUp(ofUser, "1"), runtime.DryRun(), nil, runtime.LeaveChildren())
	check(t, err, "")
	equal(t, "erased", erased, runtime.Erased{Other: 1})
	equal(t, "options", backend.erasing, store.Erasing{DryRun: true, LeaveChildren: true})
	check(t, entities.Put(ctx, typed("1", "2", "3", "4")), "")
	check(t, entities.Delete(ctx, typed("1", "", "", "")), "")
	_, found, err := entities.Get(ctx, lookedUp(ofUser, "1"))
	check(t, err, "")
	equal(t, "found", found, false)
	_, err = entities.Erase(ctx, lookedUp(ofUser, "1"))
	check(t, err, "")
	equal(t, "options", backend.erasing, store.Erasing{})
}

func TestBadEntities(t *testing.T) {
	entities, backend := openEntities(t)
	ctx := t.Context()
	for _, test := range []struct {
		name    string
		entity  store.Entity
		opts    []runtime.PutOption
		putOnly bool
		want    string
	}{
		{"nil", nil, nil, false, "invalid entity is nil"},
		{"empty", typed("", "2", "3", "4"), nil, false, "invalid id user is empty: set the entity's ID"},
		{"with #", typed("a#b", "2", "3", "4"), nil, false,
			`invalid id user "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"of another package", links{{Kind: 4, ID: "9"}}, nil, false,
			`invalid entity "9" is of another limits.yaml: use this Limiter's package`},
		{"parent with #", typed("1", "a#b", "3", "4"), nil, true,
			`invalid id team "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"looked up", lookedUp(ofUser, "1"), nil, true,
			`invalid entity "user-1" has its parent looked up, so that there is none to store: give it its parent`},
		{"a parent that only an option can give", typed("1", "2", "3", "4"),
			[]runtime.PutOption{func(m *store.Member) { m.Parent = "user-1" }}, true,
			`invalid parent "user-1" is the entity itself: name the one it belongs to`},
	} {
		t.Run(test.name, func(t *testing.T) {
			refused := func(err error) {
				t.Helper()
				checkReason(t, err, test.want)
				if _, ok := errors.AsType[*runtime.InvalidError](err); !ok {
					t.Errorf("error is a %T", err)
				}
			}
			refused(entities.Put(ctx, test.entity, test.opts...))
			if !test.putOnly {
				_, _, err := entities.Get(ctx, test.entity)
				refused(err)
				refused(entities.Delete(ctx, test.entity))
				_, err = entities.Erase(ctx, test.entity)
				refused(err)
				n := 0
				for _, err := range entities.Children(ctx, test.entity) {
					refused(err)
					n++
				}
				equal(t, "errors of Children", n, 1)
			}
			equal(t, "store was asked", backend.asked, 0)
		})
	}
}

func TestEntitiesPassErrorsOn(t *testing.T) {
	entities, store := openEntities(t)
	store.failure = errors.New("down")
	ctx, one := t.Context(), typed("1", "2", "3", "4")
	check(t, entities.Put(ctx, one), "down")
	_, _, err := entities.Get(ctx, one)
	check(t, err, "down")
	check(t, entities.Delete(ctx, one), "down")
	erased, err := entities.Erase(ctx, one)
	check(t, err, "down")
	equal(t, "erased before the error", erased, runtime.Erased{Other: 1})
	var errs []error
	for _, err := range entities.Children(ctx, one) {
		errs = append(errs, err)
	}
	if len(errs) != 2 || !errors.Is(errs[1], store.failure) {
		t.Errorf("children end with %v", errs)
	}
}

func TestMemberCheck(t *testing.T) {
	kinds := tree(together, ofUser).spec.Kinds
	for _, test := range []struct {
		entity, parent string
		want           string
	}{
		{"user-1", "team-2", ""},
		{"user-1", "", ""},
		{"org-1", "", ""},
		{"user-1-2-3", "team--", ""}, // the first '-' ends the kind
		{"user", "", `invalid entity "user" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"", "", "invalid entity is empty: write it as it is stored, such as user-123"},
		{"-1", "", `invalid entity "-1" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"User-1", "",
			`invalid entity "User-1" is of kind User, which limits.yaml does not have: it has user, team, project ` +
				`and org`},
		{"user-", "", `invalid entity "user-" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"user-a#b", "",
			`invalid id user "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"user-1", "user-1", `invalid parent "user-1" is the entity itself: name the one it belongs to`},
		{"user-1", "2", `invalid parent "2" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"user-1", "crew-2",
			`invalid parent "crew-2" is of kind crew, which limits.yaml does not have: it has user, team, project ` +
				`and org`},
		{"user-1", "team-",
			`invalid parent "team-" is not <kind>-<id>: write it as it is stored, such as user-123`},
		{"user-1", "team-a#b",
			`invalid id team "a#b" contains '#', which separates the parts of a key: replace or encode it`},
		{"user-1", "project-3",
			`invalid parent "project-3" is of kind project: the parent of kind user is of kind team, ` +
				`such as team-123`},
		{"user-1", "user-2",
			`invalid parent "user-2" is of kind user: the parent of kind user is of kind team, such as team-123`},
		{"org-1", "user-2",
			`invalid parent "user-2" cannot be stored: in limits.yaml, kind org has no parent: leave it out`},
	} {
		t.Run(test.entity+" "+test.parent, func(t *testing.T) {
			err := store.Member{Entity: test.entity, Parent: test.parent}.Check(kinds)
			checkReason(t, err, test.want)
			if _, ok := errors.AsType[*runtime.InvalidError](err); ok != (test.want != "") {
				t.Errorf("error is a %T", err)
			}
		})
	}
	checkReason(t, store.Member{Entity: "a-1"}.Check([]store.Kind{{Name: "b"}}),
		`invalid entity "a-1" is of kind a, which limits.yaml does not have: it has b`)
}

// TestMembersThatPassHaveNoCycles: from any of them, parents end.
func TestMembersThatPassHaveNoCycles(t *testing.T) {
	kinds := tree(together, ofUser).spec.Kinds
	ids := []string{"user-1", "user-2", "team-1", "team-2", "project-1", "project-2", "org-1", "org-2"}
	rapid.Check(t, func(t *rapid.T) {
		parents := map[string]string{}
		for _, id := range ids {
			parent := rapid.SampledFrom(ids).Draw(t, "parent of "+id)
			if (store.Member{Entity: id, Parent: parent}).Check(kinds) == nil {
				parents[id] = parent
			}
		}
		for _, id := range ids {
			for range kinds {
				id = parents[id]
			}
			if id != "" {
				t.Fatalf("parents go round at %s: %v", id, parents)
			}
		}
	})
}
