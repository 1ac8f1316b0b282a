package evolution_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	v1 "github.com/sluice-go/sluice/internal/test/evolution/v1/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// remove has the third version charge buckets of which the first two versions hold leases, then has these do
// all that they can. It returns the first difference of the buckets from the books. They are to have no
// attribute of the removed limit, and of the others the right balance to the millitoken.
func remove(t *testing.T, w *world) string {
	t.Helper()
	b := newBooks(w)
	entities := []string{"user-a", "project-p"}
	check := func() string {
		t.Helper()
		for _, entity := range entities {
			if left := w.attributes(t, entity, "rpm"); len(left) > 0 && b.buckets[entity].revision >= 3 {
				return fmt.Sprintf("%s has %v", entity, left)
			}
		}
		return b.wrong(t, true)
	}
	book := func(version int64, acquire bool, c cost) {
		for _, entity := range entities {
			b.book(version, entity, acquire, c.millitokens(b.of(version, entity)))
		}
	}
	one := cost{rpm: 1, tpm: 100, tpd: 10}
	var open [3][]*lease
	old := [...]*process{1: w.deploy(t, 1), 2: w.deploy(t, 2)}
	for version := int64(1); version <= 2; version++ {
		for range 6 {
			open[version] = append(open[version],
				take(t, old[version], one, runtime.LazySettle(len(open[version]) > 3)))
			book(version, true, one)
		}
		if wrong := check(); wrong != "" {
			t.Fatal(wrong)
		}
		w.later(time.Second)
	}
	if got := w.attributes(t, "user-a", "rpm"); len(got) != 6 {
		t.Fatalf("before it is removed rpm has the attributes %v", got)
	}
	take(t, w.deploy(t, 3), one)
	book(3, true, one)
	if wrong := check(); wrong != "" {
		return "the acquire that removes it: " + wrong
	}
	for version := int64(1); version <= 2; version++ {
		all, p := open[version], old[version]
		settle := func(l *lease, actual cost) {
			t.Helper()
			if err := l.settle(actual); err != nil {
				t.Error(err)
			}
			book(version, false, cost{actual.rpm - one.rpm, actual.tpm - one.tpm, actual.tpd - one.tpd})
		}
		does := []struct {
			what string
			do   func()
		}{
			{"a release", func() { all[0].release(); book(version, false, cost{-1, -100, -10}) }},
			{"a settle down", func() { settle(all[1], cost{}) }},
			{"a settle up", func() { settle(all[2], cost{rpm: 5, tpm: 300, tpd: 30}) }},
			{"one up and down", func() { settle(all[3], cost{rpm: 9, tpm: 1, tpd: 30}) }},
			{"an acquire", func() { take(t, p, one); book(version, true, one) }},
			{"an acquire of it only", func() { take(t, p, cost{rpm: 1}) }},
			{"a lazy settle, and an acquire that takes it along", func() {
				settle(all[4], cost{rpm: 3, tpm: 120, tpd: 12})
				take(t, p, one)
				book(version, true, one)
			}},
			{"a reset", func() {
				for _, entity := range entities {
					if _, err := operator.Reset(t.Context(), w.client, w.table, entity, v1.Chat); err != nil {
						t.Error(err)
					}
					for name, l := range b.buckets[entity].limits {
						b.buckets[entity].tokens[name] = l.Burst
					}
				}
			}},
			{"a reset of it", func() {
				_, err := operator.Reset(t.Context(), w.client, w.table, "user-a", v1.Chat, "rpm")
				if _, invalid := errors.AsType[*runtime.InvalidError](err); !invalid {
					t.Errorf("got %v, want an error that names the limits that are there", err)
				}
			}},
			{"a lazy release, and the end of the process", func() {
				all[5].release()
				p.close()
				book(version, false, cost{-1, -100, -10})
			}},
		}
		for _, it := range does {
			w.later(1500 * time.Millisecond)
			it.do()
			if wrong := check(); wrong != "" {
				return fmt.Sprintf("%s by version %d: %s", it.what, version, wrong)
			}
		}
	}
	return ""
}

// TestRemoving: the next write of a version that has removed a limit takes its six attributes away, in each
// bucket of the chain. Nothing that older versions do brings any of them back, and the other limits are
// charged and given back as ever.
func TestRemoving(t *testing.T) {
	if wrong := remove(t, newWorld(t)); wrong != "" {
		t.Error(wrong)
	}
}

// TestRemovingSees: attributes that stay, and one that a give-back revives, show.
func TestRemovingSees(t *testing.T) {
	for name, test := range map[string]struct {
		edit func(update, condition string) (string, string)
		want string
	}{
		"one stays": {func(update, condition string) (string, string) {
			return strings.Replace(update, "b_rpm_ra, ", "", 1), condition
		}, "has [b_rpm_ra]"},
		"blind give-backs": {func(update, condition string) (string, string) {
			condition = strings.ReplaceAll(condition, "op = :op0", "op <> :op0") // the guard of a lone writer
			return update, strings.ReplaceAll(condition, "attribute_exists(b_rpm_tk)", "op <> :op")
		}, "b_rpm_tk"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wrap = func(api dynamo.API) dynamo.API { return &edited{api, test.edit} }
			if wrong := remove(t, w); !strings.Contains(wrong, test.want) {
				t.Errorf("it does not: %s", wrong)
			}
		})
	}
}
