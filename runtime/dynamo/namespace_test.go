package dynamo_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/conformance"
	"github.com/sluice-go/sluice/internal/test/conformance/ondynamo"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// bareHash matches a value in a request that is a hash key of the default namespace.
var bareHash = regexp.MustCompile(`"S":"(ENTITY|KIND|SYSTEM|RESOURCE|CONFIG|PARENT)#`)

// hashSpy counts the requests that name a hash key of the default namespace, and those that do not.
type hashSpy struct {
	aws.HTTPClient
	bare, others *atomic.Int64
}

func (s hashSpy) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bareHash.Match(body) {
		s.bare.Add(1)
	} else {
		s.others.Add(1)
	}
	return s.HTTPClient.Do(r)
}

// TestConformanceInNamespace runs the suite of all stores in a namespace, where no request names a hash key
// without it.
func TestConformanceInNamespace(t *testing.T) {
	if dynamotest.OnLocal(t) {
		t.Skip("TestNamespaces and TestConformance ask DynamoDB Local")
	}
	longform.NoRace(t, "TestConformance runs the same goroutines")
	var bare, others atomic.Int64
	spied := func(c aws.HTTPClient) aws.HTTPClient { return hashSpy{c, &bare, &others} }
	conformance.Again(t, conformant(spied, dynamo.Namespace("team-a")),
		"TestConformance runs them without a namespace")
	if bare.Load() > 0 || others.Load() == 0 {
		t.Errorf("%d requests name a hash key of the default namespace, %d do not", bare.Load(), others.Load())
	}
}

// tenant is an owner of a namespace.
type tenant struct {
	e     *ondynamo.Table
	items dynamo.API // in the namespace
	lim   *limits.Limiter
	n     int64
}

// newTenant returns the tenant of a namespace, which may be empty, of e's table. Its numbers follow from n.
func newTenant(t *testing.T, e *ondynamo.Table, via *hashSpy, namespace string, n int64) tenant {
	t.Helper()
	client := e.Client
	if via != nil {
		via.HTTPClient = client.Options().HTTPClient
		client = dynamodb.New(client.Options(), func(o *dynamodb.Options) { o.HTTPClient = *via })
	}
	who, opts := tenant{e: e, items: client, n: n}, []dynamo.Option(nil)
	if namespace != "" {
		var err error
		if who.items, err = operator.InNamespace(client, namespace); err != nil {
			t.Fatal(err)
		}
		opts = append(opts, dynamo.Namespace(namespace))
	}
	var err error
	if who.lim, err = limits.New(dynamo.New(client, e.Name, opts...), runtime.WithClock(e)); err != nil {
		t.Fatal(err)
	}
	return who
}

// acts stores something of each kind: under the same ids as others, with numbers of its own.
func (w tenant) acts(t *testing.T) (failed error) {
	t.Helper()
	must := func(err error) { failed = errors.Join(failed, err) }
	ctx, user := t.Context(), limits.User{ID: "1", Project: limits.Project{ID: "7"}}
	must(w.lim.Check(ctx))
	children := operator.NewMembers(w.items, w.e.Name, w.e.Now)
	for i := range w.n {
		must(children.Put(ctx, store.Member{Entity: fmt.Sprint("user-", 1+i), Parent: "project-7", Cascade: true}))
	}
	lease, err := w.lim.GPT4.Acquire(ctx, limits.UserByID("1"), limits.GPT4Cost{RPM: w.n, TPM: 10 * w.n})
	if must(err); err != nil {
		return failed
	}
	must(lease.Settle(ctx, limits.GPT4Cost{RPM: w.n, TPM: 20 * w.n}))
	_, err = w.lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{RPM: w.n})
	must(err)
	_, err = w.lim.Embeddings.Acquire(ctx, limits.Project{ID: "7"}, limits.EmbeddingsCost{RPS: w.n})
	must(err)
	spec, overrides := spec(), operator.NewOverrides(w.items, w.e.Name, w.e.Now)
	for _, at := range []string{"user", "user-1"} {
		limit := bucket.Limit{Capacity: 1000 * w.n, Burst: 1000 * w.n, Refill: 1000 * w.n, Period: 60_000}
		_, err := overrides.Set(ctx, spec, store.Stored{At: at, Limits: []*bucket.Limit{&limit, nil}})
		must(err)
	}
	must(operator.NewRegional(w.items, w.e.Name, w.e.Now).PutHeartbeat(ctx, store.Heartbeat{
		Region: fmt.Sprint("region-", w.n), Epoch: w.n, Expires: w.e.Now().UnixMilli() + 60_000,
	}))
	return failed
}

// spec describes gpt-4 as far as overrides need it.
func spec() *store.Spec { return &store.Spec{Resource: "gpt-4", Limits: []string{"rpm", "tpm"}} }

// sees returns all that the tenant reads, as text.
func (w tenant) sees(t *testing.T) string {
	t.Helper()
	var lines []string
	say := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	ctx, table := t.Context(), w.e.Name
	for _, resource := range []string{"gpt-4", "embeddings"} {
		for page, err := range operator.Buckets(ctx, w.items, table, resource, "") {
			for _, b := range page.Buckets {
				for _, l := range b.Extra {
					say("bucket %s %s %s %d %d", b.Entity, resource, l.Name, l.Balance.Tokens, l.Balance.Burst)
				}
			}
			say("%d malformed, %d others, %v", len(page.Malformed), page.Others, err)
		}
	}
	members := operator.NewMembers(w.items, table, w.e.Now)
	for child, err := range members.Children(ctx, "project-7") {
		say("child %s %v", child, err)
	}
	for stored, err := range operator.NewOverrides(w.items, table, w.e.Now).List(ctx, spec()) {
		say("override %s %v %v", stored.At, *stored.Limits[0], err)
	}
	beat, err := operator.NewRegional(w.items, table, w.e.Now).Heartbeat(ctx)
	say("heartbeat %s %d %v", beat.Region, beat.Epoch, err)
	for _, entity := range []string{"user-1", "project-7", "user-3"} {
		n, err := members.Erase(ctx, entity, store.Erasing{DryRun: true, LeaveChildren: true})
		say("%s has %+v %v", entity, n, err)
	}
	return strings.Join(lines, "\n")
}

// TestNamespaces: tenants of one table, with the same ids, see what each would see in a table of its own, and
// one that erases an entity erases none of another's. The control: tenants of one namespace do not.
func TestNamespaces(t *testing.T) {
	differ := func(names ...string) (found []string) {
		e := ondynamo.New(t)
		var all []tenant
		var want []string
		for i, name := range names {
			n := int64(i + 1)
			alone := newTenant(t, ondynamo.New(t), nil, "", n)
			if err := alone.acts(t); err != nil {
				t.Fatal(err)
			}
			want = append(want, alone.sees(t))
			all = append(all, newTenant(t, e, nil, name, n))
		}
		compare := func(when string) {
			for i, who := range all {
				if got := who.sees(t); got != want[i] {
					found = append(found, fmt.Sprintf("%s %q sees\n%s\nand alone\n%s", when, names[i], got, want[i]))
				}
			}
		}
		for _, who := range all {
			if err := who.acts(t); err != nil {
				return []string{err.Error()}
			}
		}
		compare("at first")
		erasing := operator.NewMembers(all[0].items, e.Name, e.Now)
		for _, entity := range []string{"user-1", "project-7"} {
			if _, err := erasing.Erase(t.Context(), entity, store.Erasing{LeaveChildren: true}); err != nil {
				t.Fatal(err)
			}
		}
		all, want, names = all[1:], want[1:], names[1:]
		compare("later")
		return found
	}
	for _, difference := range differ("team-a", "team-b", "", "team", "a/b_c.d-9") {
		t.Error(difference)
	}
	if len(differ("", "")) == 0 {
		t.Error("two tenants of one namespace saw nothing of each other")
	}
	if len(differ("team-a", "team-a")) == 0 {
		t.Error("two tenants of one namespace saw nothing of each other")
	}
}

// TestNamespaceKeys: all that a tenant stores has its namespace in each hash key, and so has each request.
// The control is the default namespace.
func TestNamespaceKeys(t *testing.T) {
	for namespace, prefix := range map[string]string{"team-a": "team-a#", "": ""} {
		var bare, others atomic.Int64
		e := ondynamo.New(t)
		who := newTenant(t, e, &hashSpy{nil, &bare, &others}, namespace, 2)
		if err := who.acts(t); err != nil {
			t.Fatal(err)
		}
		who.sees(t)
		if named := bare.Load() == 0; named != (namespace != "") {
			t.Errorf("namespace %q: %d requests name a hash key of the default one", namespace, bare.Load())
		}
		out, err := e.Client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &e.Name})
		if err != nil {
			t.Fatal(err)
		}
		hashes := 0
		for _, stored := range out.Items {
			if item.KeyOf(stored) == item.KeyOf(item.VersionKey()) && item.NamespaceOf(stored) == "" {
				continue // of CreateTable
			}
			for _, name := range []string{"PK", "GSI1PK", "GSI2PK"} {
				if stored[name] == nil {
					continue
				}
				hashes++
				d := codec.Decoder{Item: stored}
				if !strings.HasPrefix(d.Text(name), prefix) {
					t.Errorf("namespace %q: %s is %s", namespace, name, d.Text(name))
				}
			}
		}
		if hashes < 10 {
			t.Errorf("namespace %q: %d hash keys are stored", namespace, hashes)
		}
	}
}

// TestNamespaceOwner: each namespace has an owner of its own, and the error about another one names it. So
// does the cure of a malformed item.
func TestNamespaceOwner(t *testing.T) {
	e := ondynamo.New(t)
	own, other := newTenant(t, e, nil, "team-a", 1), newTenant(t, e, nil, "", 1)
	stored := item.VersionKey()
	stored["PK"], stored["owner"], stored["layout"] = codec.S("team-a#SYSTEM#"), codec.S("beta"), codec.N(1)
	stored["revision"] = codec.N(0)
	put := func() {
		if _, err := e.Client.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &e.Name,
			Item: stored}); err != nil {
			t.Fatal(err)
		}
	}
	put()
	want := errtext.Of(store.OtherOwner("namespace team-a of table "+e.Name, "beta", "acme"))
	if err := own.lim.Check(t.Context()); errtext.Of(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := operator.CheckOwner(t.Context(), own.items, e.Name, "acme"); errtext.Of(err) != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := other.lim.Check(t.Context()); err != nil {
		t.Error(err)
	}
	stored["layout"] = codec.S("one")
	put()
	setup, ok := errors.AsType[*store.SetupError](own.lim.Check(t.Context()))
	if !ok || !strings.Contains(setup.Do, "team-a#SYSTEM# / #VERSION") {
		t.Errorf("the cure does not name the item: %v", setup)
	}
}

// TestWrongNamespace: names that are not possible, and stores that have no namespaces.
func TestWrongNamespace(t *testing.T) {
	e := ondynamo.New(t)
	for _, name := range []string{"", "Team", "-a", "a#b", "a b", strings.Repeat("a", 65)} {
		_, err := operator.InNamespace(e.Client, name)
		_, failed := limits.New(dynamo.New(e.Client, e.Name, dynamo.Namespace(name)))
		if _, setup := errors.AsType[*store.SetupError](failed); err == nil || !setup {
			t.Errorf("%q: %v, %v", name, err, failed)
		}
	}
	inside, err := operator.InNamespace(e.Client, "a")
	if err != nil {
		t.Fatal(err)
	}
	for i, backend := range []store.Store{
		migrating.New(e.Client, e.Name, dynamo.Namespace("a")), migrating.New(inside, e.Name),
	} {
		_, err := limits.New(backend)
		setup, ok := errors.AsType[*store.SetupError](err)
		if !ok || !slices.Contains(strings.Fields(setup.What), "a") {
			t.Errorf("migrating, %d: %v", i, err)
		}
	}
}
