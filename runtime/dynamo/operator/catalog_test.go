package operator_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/audited"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// lossy loses the answers of the next transactions.
type lossy struct {
	wire.API

	lose int
}

func (l *lossy) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := l.API.TransactWriteItems(ctx, in, opts...)
	if l.lose > 0 && err == nil {
		l.lose--
		return nil, &types.InternalServerError{}
	}
	return out, err
}

type catalogWorld struct {
	*testing.T
	*operator.Catalog

	spec *store.Spec
	api  *lossy
	now  time.Time
}

func newCatalogWorld(t *testing.T) *catalogWorld {
	t.Helper()
	client := memdynamo.New().Client()
	w := &catalogWorld{T: t, spec: audited.Spec(), api: &lossy{API: client}, now: time.UnixMilli(1_000_000)}
	retrier := wire.NewRetrier(dynamotest.Table(t, client, dynamotest.Streamless(operator.Table)))
	retrier.After = func(time.Duration) <-chan time.Time { // pauses take no time
		now := make(chan time.Time, 1)
		now <- time.Time{}
		return now
	}
	w.Catalog = operator.CatalogWith(w.api, retrier, func() time.Time { return w.now })
	return w
}

// set sets e, and holds that it gets the version.
func (w *catalogWorld) set(e store.Entry, version int64) store.Entry {
	w.Helper()
	rev, err := w.Set(w.Context(), w.spec, e)
	if err != nil {
		w.Fatalf("setting %s: %v", e.Name, err)
	}
	got, found, err := w.Get(w.Context(), w.spec, e.Name)
	e.Version, e.Revision = version, rev
	if diff := cmp.Diff(e, got); diff != "" || !found || err != nil {
		w.Errorf("%s is found: %v, %v\n%s", e.Name, found, err, diff)
	}
	return e
}

func (w *catalogWorld) conflicts(what string, err error) {
	w.Helper()
	if _, ok := errors.AsType[*store.ConflictError](err); !ok {
		w.Errorf("%s: %v, want a ConflictError", what, err)
	}
}

func perMinute(n int64) *bucket.Limit {
	l := bucket.Per(n, time.Minute)
	return &l
}

// TestCatalog: an entry comes back as it was set, and of two who change it one gets a conflict.
func TestCatalog(t *testing.T) {
	w := newCatalogWorld(t)
	if e, found, err := w.Get(w.Context(), w.spec, "gpt-5"); found || err != nil || e.Version != 0 {
		t.Errorf("without an entry: %+v, %v, %v", e, found, err)
	}
	old := w.set(store.Entry{
		Name: "gpt-5", Buckets: "gpt-4", Prices: []int64{250_000, -1},
		Numbers: []store.Stored{
			{At: "key", Limits: []*bucket.Limit{perMinute(10), nil}},
			{At: "pro.key", Limits: []*bucket.Limit{perMinute(200), nil}},
		},
	}, 1_000_000)
	w.set(store.Entry{Name: "gpt-5-2026", Alias: "gpt-5"}, 1_000_000)
	next := store.Entry{Name: "gpt-5", Revision: old.Revision}
	w.set(next, 1_000_001)
	_, err := w.Set(w.Context(), w.spec, next)
	w.conflicts("an old revision", err)
	next.Revision = ""
	_, err = w.Set(w.Context(), w.spec, next)
	w.conflicts("no revision", err)
	next.Revision = "what?"
	_, err = w.Set(w.Context(), w.spec, next)
	w.conflicts("another store's revision", err)

	var names []string
	for e, err := range w.List(w.Context(), w.spec) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"gpt-5", "gpt-5-2026"}) {
		t.Errorf("listed %q", names)
	}
}

// TestCatalogDelete: a removed name is not found, and its version goes on from where it was.
func TestCatalogDelete(t *testing.T) {
	w := newCatalogWorld(t)
	e := w.set(store.Entry{Name: "gpt-5"}, 1_000_000)
	w.conflicts("an old revision", w.Delete(w.Context(), w.spec, "gpt-5", "7"))
	if err := w.Delete(w.Context(), w.spec, "gpt-5", e.Revision); err != nil {
		t.Fatal(err)
	}
	if e, found, err := w.Get(w.Context(), w.spec, "gpt-5"); found || err != nil || e.Version != 1_000_001 {
		t.Errorf("after a removal: %+v, %v, %v", e, found, err)
	}
	for e, err := range w.List(w.Context(), w.spec) {
		t.Errorf("listed %v, %v", e, err)
	}
	w.set(store.Entry{Name: "gpt-5"}, 1_000_002)
}

// TestCatalogLost: a write whose answer is lost is made once.
func TestCatalogLost(t *testing.T) {
	w := newCatalogWorld(t)
	w.api.lose = 1
	e := w.set(store.Entry{Name: "gpt-5"}, 1_000_000)
	w.api.lose = 1
	w.set(store.Entry{Name: "gpt-5", Revision: e.Revision, Buckets: "gpt-4"}, 1_000_001)
}

// TestCatalogMalformed: the error names the item.
func TestCatalogMalformed(t *testing.T) {
	w := newCatalogWorld(t)
	e := store.Entry{Name: "gpt-5", Prices: []int64{-1, 5}}
	w.set(e, 1_000_000)
	broken := audited.Spec()
	broken.Usages = []string{"input", "x"}
	w.spec.Usages = nil
	if got, _, err := w.Get(w.Context(), broken, "gpt-5"); err != nil || got.Prices != nil {
		t.Errorf("a price of an unknown usage: %v, %v", got.Prices, err)
	}
	w.now = time.UnixMilli(1 << 60)
	_, err := w.Set(w.Context(), w.spec, store.Entry{Name: "gpt-6"})
	if _, ok := errors.AsType[*store.SetupError](err); !ok {
		t.Errorf("a clock far ahead: %v, want a SetupError", err)
	}
}
