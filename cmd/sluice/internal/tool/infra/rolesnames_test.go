package infra_test

import (
	"errors"
	"testing"
	"time"

	templates "github.com/sluice-go/sluice/internal/test/conformance/named"
	schemas "github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// template returns model, a template.
func template(t *testing.T) *store.Spec {
	t.Helper()
	defs, err := schemas.Of(templates.New)
	if err != nil {
		t.Fatal(err)
	}
	return defs[0].Spec()
}

// setNames adds names to a template's catalog, one with the buckets of a resource, and removes one.
func setNames(t *testing.T, s *service) {
	t.Helper()
	catalog, spec := operator.NewCatalog(inNamespace(t, s), testTable, time.Now), template(t)
	for _, e := range []store.Entry{{Name: "gpt-5"}, {Name: "gpt-4", Buckets: "gpt-4"}, {Name: "gpt-3"}} {
		if _, err := catalog.Set(t.Context(), spec, e); err != nil {
			t.Fatal(err)
		}
	}
	seeNames(t, s)
	e, _, err := catalog.Get(t.Context(), spec, "gpt-3")
	if err == nil {
		err = catalog.Delete(t.Context(), spec, "gpt-3", e.Revision)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// seeNames reads a template's catalog.
func seeNames(t *testing.T, s *service) {
	t.Helper()
	catalog, spec := operator.NewCatalog(inNamespace(t, s), testTable, time.Now), template(t)
	if _, found, err := catalog.Get(t.Context(), spec, "gpt-5"); err != nil || !found {
		t.Fatalf("gpt-5 is found: %v, %v", found, err)
	}
	for _, err := range catalog.List(t.Context(), spec) {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// findOnPlan finds what is on a plan, and reads the records of who put it there.
func findOnPlan(t *testing.T, s *service) {
	t.Helper()
	found := 0
	for page, err := range operator.OnPlan(t.Context(), s.client(), testTable, "", "project-", "pro") {
		if err != nil {
			t.Fatal(err)
		}
		found += len(page.Entities)
	}
	of := store.Audited{Entity: "project-7"}
	for _, err := range operator.Changes(t.Context(), s.client(), testTable, of, time.Time{}) {
		if err != nil {
			t.Fatal(err)
		}
		found++
	}
	if found != 2 {
		t.Errorf("found %d entities and records, want one of each", found)
	}
}

// useNames has a service call names, also one that there is not.
func useNames(t *testing.T, backend store.Store) {
	t.Helper()
	lim, err := templates.New(backend)
	if err != nil {
		t.Fatal(err)
	}
	key := templates.Key{ID: "1", Org: templates.Org{ID: "7"}}
	for _, name := range []string{"gpt-5", "gpt-4"} {
		r, err := lim.Model.Named(t.Context(), name)
		if err == nil {
			_, err = r.Acquire(t.Context(), key, templates.ModelCost{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	_, err = lim.Model.Named(t.Context(), "gpt-9")
	if _, unknown := errors.AsType[*store.UnknownNameError](err); !unknown {
		t.Fatal(err)
	}
	if err := lim.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}
