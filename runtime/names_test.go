package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"testing"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// entries is a Catalog in memory that is only read.
type entries []store.Entry

func (e entries) Get(_ context.Context, _ *store.Spec, name string) (store.Entry, bool, error) {
	for _, entry := range e {
		if entry.Name == name {
			return entry, true, nil
		}
	}
	return store.Entry{}, false, nil
}

func (e entries) List(context.Context, *store.Spec) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		for _, entry := range e {
			if !yield(entry, nil) {
				return
			}
		}
	}
}

func (entries) Set(context.Context, *store.Spec, store.Entry) (store.Revision, error) {
	return "", errors.New("only read")
}

func (entries) Delete(context.Context, *store.Spec, string, store.Revision) error {
	return errors.New("only read")
}

// priced is what generated code would define for a name of gpt-4, a template. Its rpm is by name, and its tpm
// of all names.
type priced struct {
	*resource

	prices []int64
}

func openNames(t *testing.T, backend *fake) (*runtime.Limiter, *runtime.Names[priced]) {
	t.Helper()
	def := tree(together, ofUser)
	kind := &def.spec.Kinds[ofUser]
	all := *kind
	all.AllNames, all.Limits = true, []bucket.Limit{{}, kind.Limits[1]}
	kind.Limits = []bucket.Limit{kind.Limits[0], {}}
	def.spec.Kinds = append(def.spec.Kinds, all)
	b := runtime.NewBuilder(backend, quiet())
	every := runtime.BindNames[entity](b, def, toVector, fromVector, func(r *resource, prices []int64) priced {
		return priced{r, prices}
	})
	lim, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	return lim, every
}

// TestNamed: a call on a name charges its buckets and those of all names, and its prices are the catalog's.
func TestNamed(t *testing.T) {
	backend := &fake{catalog: entries{
		{Name: "a", Version: 1, Prices: []int64{7}}, {Name: "b", Version: 1, Alias: "a"},
		{Name: "c", Version: 1, Buckets: "old-c"},
	}}
	lim, names := openNames(t, backend)
	user := typed("1", "", "", "")
	for name, want := range map[string]string{
		"a": "acquire gpt-4/a user-1,user-1", "b": "acquire gpt-4/a user-1,user-1",
		"c": "acquire old-c user-1,user-1",
	} {
		named, err := names.Named(t.Context(), name)
		equal(t, "error", err, nil)
		backend.calls = nil
		lease, err := named.Acquire(t.Context(), user, cost{RPM: 1, TPM: 2})
		equal(t, "error", err, nil)
		equal(t, name, fmt.Sprint(backend.calls), "["+want+"]")
		equal(t, "cost", lease.Cost(), cost{RPM: 1, TPM: 2})
		if name != "c" {
			equal(t, "prices", fmt.Sprint(named.prices), "[7]")
		}
	}
	_, err := names.Named(t.Context(), "d")
	unknown, ok := errors.AsType[*runtime.UnknownNameError](err)
	if !ok || *unknown != (runtime.UnknownNameError{Resource: "gpt-4", Name: "d"}) {
		t.Errorf("a name that there is not: %v", err)
	}
	equal(t, "close", lim.Close(t.Context()), nil)
}
