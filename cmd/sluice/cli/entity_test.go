package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

const takenUp = "running processes use it once their caches expire, after 1m by default\n"

// session runs commands against one table and one schema.
type session struct {
	*testing.T

	client *dynamodb.Client
	flags  []string
}

// newSession makes a table for the commands of a test.
func newSession(t *testing.T, file string) (s session, table string) {
	t.Helper()
	client := dynamotest.Client(t)
	table = dynamotest.Table(t, client, operator.Table)
	return session{t, client, []string{"--table", table, "--file", file}}, table
}

// run runs a command that is to exit with code and to print these.
func (s session) run(command string, code int, stdout, stderr string) {
	s.Helper()
	got, out, errs := sluice(s.T, start, append(strings.Fields(command), s.flags...)...)
	if got != code || out != stdout || !sameFacts(errs, stderr) {
		s.Errorf("%s: exit code %d, stdout\n%s\nstderr\n%s\nwant %d, stdout\n%s\nstderr\n%s", command, got, out,
			errs, code, stdout, stderr)
	}
}

// items returns how many items the table has.
func (s session) items() int {
	s.Helper()
	out, err := s.client.Scan(s.Context(), &dynamodb.ScanInput{TableName: &s.flags[1],
		Select: types.SelectCount})
	if err != nil {
		s.Fatal(err)
	}
	return int(out.Count)
}

func TestEntity(t *testing.T) {
	sequential(t)
	s, table := newSession(t, schemaFile(t, tree))
	s.run("entity show user-123", 1, "",
		"sluice: user-123 is not stored: run `sluice entity put user-123 --parent project-<id>`\n")
	s.run("entity show org-1", 1, "", "sluice: org-1 is not stored: run `sluice entity put org-1`\n")
	s.run("entity children project-7", 0, "", "no stored entity has the parent project-7\n")
	s.run("entity delete user-123", 0, "user-123 is not stored: nothing to delete\n", "")
	s.run("entity put user-123", 2, "", "sluice: --parent is missing, and look-ups for gpt-4 need it: run "+
		"`sluice entity put user-123 --parent project-<id>`, or pass --no-cascade; run `sluice entity put "+
		"--help`\n")
	if n := s.items(); n != 0 {
		t.Errorf("%d items were written by commands that read, or refuse", n)
	}

	// No resource charges what is above a project, so that it need not be stored.
	chain := `  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  -          -        not stored (not needed)
`
	s.run("entity put user-123 --parent project-7", 0, "stored user-123\n"+chain+takenUp, "")
	s.run("entity show user-123", 0, chain, "")
	s.run("entity put project-7 --parent org-1", 0, `stored project-7
  ENTITY     PARENT  CASCADE
  project-7  org-1   yes
  org-1      -       -        not stored (not needed)
`+takenUp, "")
	s.run("entity put user-123 --parent project-7", 0, `stored user-123, unchanged
  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  org-1      yes
  org-1      -          -        not stored (not needed)
`+takenUp, "")

	s.run("entity put user-123", 0, `stored user-123, unchanged
  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  org-1      yes
  org-1      -          -        not stored (not needed)
`+takenUp, "")

	// Without cascade look-ups end.
	s.run("entity put user-123 --parent project-8 --no-cascade", 0,
		`stored user-123, instead of parent project-7, cascade yes
  ENTITY    PARENT     CASCADE
  user-123  project-8  no
`+takenUp, "")
	s.run("entity put user-123 --no-cascade", 0, `stored user-123, unchanged
  ENTITY    PARENT     CASCADE
  user-123  project-8  no
`+takenUp, "")
	// A parent that nothing needs is kept as well.
	s.run(
		"entity put project-7 --no-cascade",
		0,
		`stored project-7, instead of cascade yes; its parent org-1 is kept
  ENTITY     PARENT  CASCADE
  project-7  org-1   no
`+takenUp,
		"",
	)
	s.run("entity put project-7", 0, `stored project-7, instead of cascade no; its parent org-1 is kept
  ENTITY     PARENT  CASCADE
  project-7  org-1   yes
  org-1      -       -        not stored (not needed)
`+takenUp, "")

	// Without a parent look-ups fail, which other programs can have stored.
	unowned := "  ENTITY    PARENT  CASCADE\n" +
		"  user-123  -       yes      no parent: look-ups for gpt-4 fail, run `sluice entity put user-123 " +
		"--parent project-<id>`\n"
	if err := operator.NewMembers(s.client, table, fixed{start}.Now).Put(t.Context(),
		store.Member{Entity: "user-123", Cascade: true}); err != nil {
		t.Fatal(err)
	}
	s.run("entity show user-123", 0, unowned, "")
	s.run("entity put user-123 --no-cascade", 0, `stored user-123, instead of parent -, cascade yes
  ENTITY    PARENT  CASCADE
  user-123  -       no
`+takenUp, "")

	s.run("entity put user-123 --parent project-7", 0, `stored user-123, instead of parent -, cascade no
  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  org-1      yes
  org-1      -          -        not stored (not needed)
`+takenUp, "")
	s.run("entity children project-7", 0, "user-123\n", "")
	s.run("entity delete project-7", 1, "",
		"sluice: project-7 is the parent of user-123, whose look-ups would fail: nothing was deleted; store "+
			"another parent for them first, or pass --force\n")
	for i := range 3 {
		_, _, errs := sluice(t, start, append([]string{"entity", "put", fmt.Sprint("user-", i), "--parent",
			"project-7"}, s.flags...)...)
		if errs != "" {
			t.Fatal(errs)
		}
	}
	s.run("entity children project-7", 0, "user-0\nuser-1\nuser-123\nuser-2\n", "")
	s.run("entity delete project-7", 1, "",
		"sluice: project-7 is the parent of user-0, user-1, user-123, others, whose look-ups would fail: "+
			"nothing was deleted; store another parent for them first, or pass --force\n")
	if n := s.items(); n != 5 {
		t.Errorf("%d items are stored, want 5", n)
	}
	s.run("entity delete project-7 --force", 0, "deleted project-7\n"+takenUp, "")
	s.run("entity delete user-123", 0, "deleted user-123\n"+takenUp, "")
	s.run("entity children project-7", 0, "user-0\nuser-1\nuser-2\n", "")
}

// TestEntityLinkMissing: where all kinds have a bucket, every link is needed.
func TestEntityLinkMissing(t *testing.T) {
	sequential(t)
	file := schemaFile(t, strings.Replace(tree, "entities: {project: {}}\n    cascade: none",
		"entities: {org: {}, user: {}}", 1))
	s, table := newSession(t, file)
	s.run("entity put user-123 --parent project-7", 0, "stored user-123\n"+
		"  ENTITY     PARENT     CASCADE\n"+
		"  user-123   project-7  yes\n"+
		"  project-7  -          -        not stored: look-ups for embeddings fail, run `sluice entity put "+
		"project-7 --parent org-<id>`\n"+
		takenUp, "")

	// Another schema has left this.
	err := operator.NewMembers(s.client, table, fixed{start}.Now).Put(t.Context(),
		store.Member{Entity: "project-7", Parent: "user-123", Cascade: true})
	if err != nil {
		t.Fatal(err)
	}
	code, out, errs := sluice(t, start, append([]string{"entity", "show", "user-123"}, s.flags...)...)
	shown, wrong, _ := strings.Cut(out, "  parent ")
	expect(t, code, shown, errs, 0, `  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  user-123   yes    `, "")
	want := `"user-123" is of kind user: the parent of kind project is of kind org, such as org-123`
	if !sameFacts(wrong, want) || !hasFacts(wrong, "of kind org") {
		t.Errorf("got %s, want the facts of %s", wrong, want)
	}
	s.run("entity put project-7 --no-cascade", 1, "",
		"sluice: parent \"user-123\" is of kind user: the parent of kind project is of kind org, "+
			"such as org-123; it is what is stored of project-7: pass --parent\n")
}

// TestEntityChildrenPaged: there are more children than one page of 1 MB has.
func TestEntityChildrenPaged(t *testing.T) {
	sequential(t)
	engine := memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "rate_limits"); err != nil {
		t.Fatal(err)
	}
	members := operator.NewMembers(engine.Client(), "rate_limits", fixed{start}.Now)
	var want strings.Builder
	for i := range 2000 {
		m := store.Member{Entity: fmt.Sprintf("user-%04d%s", i, strings.Repeat("x", 250)), Parent: "project-7",
			Cascade: true}
		if err := members.Put(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		want.WriteString(m.Entity + "\n")
	}
	var paged, stop atomic.Bool
	ctx, interrupt := context.WithCancel(t.Context())
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		if bytes.Contains(body, []byte(`"ExclusiveStartKey"`)) {
			paged.Store(true)
			if stop.Load() {
				interrupt()
				<-r.Context().Done()
				return
			}
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		engine.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	children := func() (code int, stdout, stderr string) {
		var out, errs strings.Builder
		code = cli.Program{Stdout: &out, Stderr: &errs, Now: start.Local}.Run(ctx,
			[]string{"entity", "children", "project-7", "--endpoint", server.URL, "--file", schemaFile(t, tree)})
		return code, out.String(), errs.String()
	}
	code, out, errs := children()
	expect(t, code, out, errs, 0, want.String(), "")
	if !paged.Load() {
		t.Error("all came in one page, which tests nothing")
	}

	// Ctrl-C: what has been read is printed.
	stop.Store(true)
	code, out, errs = children()
	if out == "" || out == want.String() || !strings.HasPrefix(want.String(), out) {
		t.Errorf("interrupted: %d of %d bytes were printed", len(out), want.Len())
	}
	expect(t, code, "", errs, 1, "", "sluice: table rate_limits: context canceled\n")
}

// TestEntityLookedUp: what put stores is what a call that knows the id alone charges, and what show says is
// missing is what such a call fails of.
func TestEntityLookedUp(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	acquire := func() error {
		lim, err := limits.New(dynamo.New(storetest.Dated(s.client, fixed{start}), table),
			runtime.WithClock(fixed{start}))
		if err == nil {
			_, err = lim.GPT4.Acquire(t.Context(), limits.UserByID("123"), limits.GPT4Cost{RPM: 35})
		}
		return err
	}
	if err := acquire(); err == nil ||
		!strings.Contains(err.Error(), "sluice entity put user-123 --parent project-<id>") {
		t.Errorf("without anything stored: %v", err)
	}
	if err := operator.NewMembers(s.client, table, fixed{start}.Now).Put(t.Context(),
		store.Member{Entity: "user-123", Cascade: true}); err != nil {
		t.Fatal(err)
	}
	if err := acquire(); err == nil ||
		!strings.Contains(err.Error(), "sluice entity put user-123 --parent project-<id>") {
		t.Errorf("without a parent: %v", err)
	}
	s.run("entity put user-123 --parent project-7", 0, `stored user-123, instead of parent -, cascade yes
  ENTITY     PARENT     CASCADE
  user-123   project-7  yes
  project-7  -          -        not stored (not needed)
`+takenUp, "")
	if err := acquire(); err != nil {
		t.Fatal(err)
	}
	s.run(
		"entity put user-123 --no-cascade",
		0,
		`stored user-123, instead of cascade yes; its parent project-7 is kept
  ENTITY    PARENT     CASCADE
  user-123  project-7  no
`+takenUp,
		"",
	)
	if err := acquire(); err != nil {
		t.Fatal(err)
	}
	for entity, want := range map[string]string{"user-123": "  rpm           30 ",
		"project-7": "  rpm          965 "} {
		code, out, errs := sluice(t, start, "peek", entity, "gpt-4", "--table", table)
		if code != 0 || !strings.Contains(out, want) {
			t.Errorf("%s has not %s left: exit code %d\n%s%s", entity, want, code, out, errs)
		}
	}
}

// TestEntityOfTemplate: a template has kinds of buckets beyond the kinds of entities. An entity below those
// on plans needs its parent, even if no bucket of theirs is charged.
func TestEntityOfTemplate(t *testing.T) {
	sequential(t)
	s, _ := newSession(t, catalogs)
	s.run("entity put key-1", 2, "", "sluice: --parent is missing, and look-ups for model, voice need it: run "+
		"`sluice entity put key-1 --parent org-<id>`, or pass --no-cascade; run `sluice entity put --help`\n")
	s.run("entity put key-1 --parent org-7", 0, `stored key-1
  ENTITY  PARENT  CASCADE
  key-1   org-7   yes
  org-7   -       -        not stored (not needed)
`+takenUp, "")
	s, _ = newSession(t, schemaFile(t, `version: 1
owner: acme
revision: 1
go: {package: limits}
plans: {kind: org, names: [pro]}
entities: {org: {}, key: {parent: org}}
resources:
  api:
    limits: {rps: {capacity: 1, every: 1s}}
    entities: {key: {}}
    plans: {pro: {key: {rps: {capacity: 2}}}}
`))
	s.run("entity put key-1", 2, "", "sluice: --parent is missing, and look-ups for api need it: run "+
		"`sluice entity put key-1 --parent org-<id>`, or pass --no-cascade; run `sluice entity put --help`\n")
	s.run("entity put org-7", 0, "stored org-7\n  ENTITY  PARENT  CASCADE\n  org-7   -       yes\n"+takenUp, "")
}
