package codectest

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// mail is a generated resource with windows of each kind of calendar, and one limit that refills.
func mail(t *testing.T) codec.Resource {
	t.Helper()
	all, err := definitions.Of(windows.New)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(def store.Definition) bool { return def.Spec().Resource == windows.Mail })
	return all[i].(codec.Resource)
}

// faultsOfMail returns the errors of each check.
func faultsOfMail(r codec.Resource) map[string]error {
	found := make(map[string]error)
	kind := slices.IndexFunc(r.Spec().Kinds, func(k store.Kind) bool { return k.Name == "org" })
	var b windows.MailBucket
	balances := []*bucket.Balance{&b.Weekly, &b.Daily, &b.Monthly, &b.Quarterly, &b.Yearly, &b.RPM}
	for _, check := range newCase(r, kind, &b, balances).checks() {
		if err := errors.Join(check.run()...); err != nil {
			found[check.name] = err
		}
	}
	return found
}

// altered is a resource whose paths are changed after they are built.
type altered struct {
	codec.Resource
	path  string
	alter func(*codec.Write)
}

func (a altered) changed(path string, w *codec.Write) {
	if path == a.path {
		a.alter(w)
	}
}

func (a altered) Normal(w *codec.Write)  { a.Resource.Normal(w); a.changed("Normal", w) }
func (a altered) Retry(w *codec.Write)   { a.Resource.Retry(w); a.changed("Retry", w) }
func (a altered) Adjust(w *codec.Write)  { a.Resource.Adjust(w); a.changed("Adjust", w) }
func (a altered) Reshape(w *codec.Write) { a.Resource.Reshape(w); a.changed("Reshape", w) }

// TestWindows: a generated resource with windows has no fault, and each fault in its windows is found.
func TestWindows(t *testing.T) {
	sound := mail(t)
	if found := faultsOfMail(sound); len(found) > 0 {
		t.Error(found)
	}
	drop := func(clause string) func(*codec.Write) {
		return func(w *codec.Write) {
			if !strings.Contains(w.Cond, clause) {
				t.Errorf("there is no %s to drop in %s", clause, w.Cond)
			}
			w.Cond = strings.Replace(w.Cond, clause, "", 1)
		}
	}
	for name, tc := range map[string]struct {
		fault codec.Resource
		check string
	}{
		"a charge that guards no window": {
			altered{sound, "Normal", drop(" AND b_daily_we = :daily_we0")}, "windows",
		},
		"a retry that guards no window": {
			altered{sound, "Retry", drop(" AND b_yearly_we = :yearly_we0")}, "windows",
		},
		"a give-back that guards no window": {
			altered{sound, "Adjust", drop("\nAND b_monthly_we = :monthly_we0")}, "windows",
		},
		"a reshape that guards no window": {
			altered{sound, "Reshape", drop(" OR b_weekly_we = :weekly_we0")}, "windows",
		},
		"a guard of another window": {altered{sound, "Normal", func(w *codec.Write) {
			w.Values[":daily_we0"] = w.Values[":daily_we"]
		}}, "windows"},
		"a charge that stores no window": {altered{sound, "Normal", func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, ", b_daily_we = :daily_we", "", 1)
		}}, "windows"},
		"a charge that stores another window": {altered{sound, "Normal", func(w *codec.Write) {
			w.Values[":daily_we"] = codec.N(0)
		}}, "windows"},
		"a give-back that stores a window": {altered{sound, "Adjust", func(w *codec.Write) {
			w.Update = strings.Replace(w.Update, "SET ", "SET b_daily_we = :daily_we, ", 1)
		}}, "windows"},
		"an item without its window": {broken{Resource: sound, create: func(w *codec.Write) {
			delete(w.Item, "b_daily_we")
		}}, "image"},
		"an item of another window": {broken{Resource: sound, create: func(w *codec.Write) {
			w.Item["b_daily_we"] = codec.N(3)
		}}, "image"},
		"balances without their window": {
			broken{Resource: sound, balances: func(i *bucket.Image, _ codec.Item) error {
				i.Balances[0].Ends = 0
				return nil
			}}, "balances",
		},
	} {
		if found := faultsOfMail(tc.fault); found[tc.check] == nil {
			t.Errorf("%s: %s finds nothing; found by others: %v", name, tc.check, slices.Sorted(maps.Keys(found)))
		}
	}
}

// TestNames: a clause is found as a whole, not as the start or the end of another.
func TestNames(t *testing.T) {
	for text, want := range map[string]bool{
		"b_x_we = :x_we0":                  true,
		"a = :a AND b_x_we = :x_we0\nAND":  true,
		"(b_x_we = :x_we0)":                true,
		"b_x_we = :x_we01":                 false,
		"ab_x_we = :x_we0":                 false,
		"ab_x_we = :x_we0 b_x_we = :x_we0": true,
		"":                                 false,
	} {
		if got := names(text, "b_x_we = :x_we0"); got != want {
			t.Errorf("%q has the clause: %v, want %v", text, got, want)
		}
	}
}
