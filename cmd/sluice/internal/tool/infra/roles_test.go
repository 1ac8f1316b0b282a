package infra_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/infra"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/region/feed"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// findings returns where a policy and the requests that were sent under it part: what was asked and is not
// allowed, and what is allowed and was not asked.
func findings(p policy, sent []request) []string {
	var all []string
	used := map[string]bool{}
	for _, r := range sent {
		for _, a := range r.asks {
			if !p.allows(a, used) {
				all = append(all, fmt.Sprintf("not allowed: %s on %s, keys %q", a.action, a.resource, a.keys))
			}
		}
	}
	for _, grant := range p.granted() {
		if !used[grant] {
			all = append(all, "allowed, but not called: "+grant)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// TestRoles sends all that each role sends, and holds its policy against it. The controls: less any action it
// is too little, and with one more too much.
func TestRoles(t *testing.T) {
	longform.NoRace(t, "its commands and processes are those of other tests")
	s := serve(t)
	command := commander(t, s)
	sent := map[infra.Role][]request{}

	administer(t, s, command)
	setPlans(t, s)
	setNames(t, s)
	findOnPlan(t, s)
	sent[infra.Admin] = s.take()
	work(t, s, command, migrating.New(s.client(), testTable))
	useNames(t, migrating.New(s.client(), testTable))
	sent[infra.Acquire] = s.take()
	look(command)
	seePlans(t, s)
	seeNames(t, s)
	sent[infra.ReadOnly] = s.take()
	aggregate(command)
	sent[infra.Aggregator] = s.take()
	sent[infra.RegionSync] = syncRegions(t, s, command)

	for _, role := range infra.Roles() {
		p := policyOf(t, role)
		for _, finding := range findings(p, sent[role]) {
			t.Errorf("%s: %s", role, finding)
		}
		for _, grant := range p.granted() {
			if len(findings(p.without(grant), sent[role])) == 0 {
				t.Errorf("%s: nobody noticed that %s was missing", role, grant)
			}
		}
		for i, s := range p.Statement {
			for _, key := range s.Condition[conditionOperator][leading] {
				less := p.without("")
				less.Statement[i].Condition = map[string]map[string][]string{
					conditionOperator: {leading: slices.DeleteFunc(
						slices.Clone(s.Condition[conditionOperator][leading]), func(k string) bool { return k == key })},
				}
				if len(findings(less, sent[role])) == 0 {
					t.Errorf("%s: nobody noticed that key %s was missing", role, key)
				}
			}
		}
		more := p.without("")
		more.Statement[0].Action = append(slices.Clone(more.Statement[0].Action), "dynamodb:DeleteTable")
		if got := findings(more, sent[role]); !slices.Contains(got, "allowed, but not called: "+
			more.Statement[0].Sid+" DeleteTable") {
			t.Errorf("%s: nobody noticed a right too many: %q", role, got)
		}
	}

	// A role's limits: what it must not do, its policy does not allow.
	for _, test := range []struct {
		role infra.Role
		ask  ask
	}{
		{infra.Acquire, ask{"UpdateItem", testARN, []string{"KIND#user"}}},
		{infra.Acquire, ask{"UpdateItem", testARN, []string{"PLANS#"}}},
		{infra.Acquire, ask{"PutItem", testARN, []string{"CATALOG#model"}}},
		{infra.Acquire, ask{"PutItem", testARN, []string{"ENTITY#user-1", "KIND#user"}}},
		{infra.Acquire, ask{"UpdateItem", testARN + "2", []string{"ENTITY#user-1"}}},
		{infra.Acquire, ask{"DeleteItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.Aggregator, ask{"UpdateItem", testARN, []string{"KIND#user"}}},
		{infra.Aggregator, ask{"UpdateItem", testARN, []string{"SYSTEM#"}}},
		{infra.Aggregator, ask{"PutItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.Aggregator, ask{"Query", testARN, []string{"ENTITY#user-1"}}},
		{infra.Aggregator, ask{"GetRecords", testARN + "2/stream/1", nil}},
		{infra.ReadOnly, ask{"UpdateItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.ReadOnly, ask{"PutItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.Admin, ask{"DeleteTable", testARN, nil}},
		{infra.RegionSync, ask{"PutItem", testARN, []string{"KIND#user"}}},
		{infra.RegionSync, ask{"UpdateItem", testARN, []string{"KIND#user"}}},
		{infra.RegionSync, ask{"UpdateItem", testARN, []string{"PLANS#"}}},
		{infra.RegionSync, ask{"PutItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.RegionSync, ask{"DeleteItem", testARN, []string{"ENTITY#user-1"}}},
		{infra.RegionSync, ask{"s3:PutObject", bucketARN + "/other/snapshot.json", nil}},
		{infra.RegionSync, ask{"s3:DeleteObject", objectsARN + "eu-central-1/snapshot.json", nil}},
	} {
		if policyOf(t, test.role).allows(test.ask, map[string]bool{}) {
			t.Errorf("%s may %s %s %q", test.role, test.ask.action, test.ask.resource, test.ask.keys)
		}
	}
}

// commander returns a function that runs sluice, and expects an exit code.
func commander(t *testing.T, s *service) func(exit int, line string) {
	t.Helper()
	return func(exit int, line string) {
		t.Helper()
		args := append(strings.Fields(line), "--endpoint", s.url, "--table", testTable)
		if s.space != "" {
			args = append(args, "--namespace", s.space)
		}
		switch args[0] {
		case "entity", "override", "migrate":
			args = append(args, "--file", "../../../../../limits.yaml")
		case "grant":
			args = append(args, "--file", "../../../../../internal/test/conformance/prepaid/limits.yaml")
		case "region":
			args = append(args, "--file", "../../../../../examples/regionsync/limits.yaml",
				"--snapshots", snapshots, "--as", "eu-central-1")
		}
		var out strings.Builder
		if code := (cli.Program{Stdout: &out, Stderr: &out,
			Now: func() time.Time { return time.Now().Add(s.ahead) }}).Run(t.Context(), args); code != exit {
			t.Fatalf("sluice %s: exit code %d\n%s", line, code, &out)
		}
	}
}

// administer runs all that changes something.
func administer(t *testing.T, s *service, sluice func(exit int, line string)) {
	t.Helper()
	sluice(0, "table create")
	made := s.take()
	table := testTable
	if _, err := s.client().PutItem(t.Context(), &dynamodb.PutItemInput{TableName: &table, Item: codec.Item{
		"PK": codec.S("ENTITY#user-9"), "SK": codec.S("#BUCKET#gpt-4#rpm"), perlimit.Refilled: codec.N(1),
		perlimit.Tokens:   codec.N(1),
		perlimit.Capacity: codec.N(1), perlimit.Burst: codec.N(1), perlimit.Refill: codec.N(1),
		perlimit.Period: codec.N(1),
	}}); err != nil {
		t.Fatal(err)
	}
	s.take() // that was the program that wrote such items
	s.put(made)
	sluice(0, "migrate")
	sluice(0, "migrate --cleanup")
	sluice(1, "table create --recoverable") // the engine has no recovery: it refuses the call, which was made
	change(sluice)
}

// change runs all that changes something in a namespace.
func change(sluice func(exit int, line string)) {
	sluice(0, "entity put user-1 --parent project-7")
	sluice(0, "override set user gpt-4 rpm=200")
	sluice(0, "override set user-1 gpt-4 rpm=300")
	see(sluice)
	sluice(1, "reset user-1 gpt-4") // there is no bucket
	sluice(0, "grant org-1 gpt-4 credits=5 --id invoice-1")
	sluice(0, "grant org-1 gpt-4 credits=5 --id invoice-2")
	sluice(0, "override delete user-1 gpt-4")
	sluice(0, "entity delete user-1")
	sluice(0, "entity erase user-1")
}

// look runs all that changes nothing.
func look(sluice func(exit int, line string)) {
	sluice(0, "table check")
	see(sluice)
	sluice(0, "migrate --dry-run")
	sluice(0, "migrate --verify")
}

// see runs all that changes nothing in a namespace.
func see(sluice func(exit int, line string)) {
	sluice(0, "peek user-1 gpt-4")
	sluice(0, "peek user-2 gpt-4") // who has no bucket
	sluice(0, "top gpt-4")
	sluice(0, "entity show user-1")
	sluice(0, "entity children project-7")
	sluice(0, "override get user-1 gpt-4")
	sluice(0, "override list gpt-4")
	sluice(0, "override export")
	sluice(0, "override explain user-1 gpt-4")
	sluice(0, "usage user-1")
}

// inSpace returns the options of a store in the namespace of s.
func inSpace(s *service) []dynamo.Option {
	if s.space == "" {
		return nil
	}
	return []dynamo.Option{dynamo.Namespace(s.space)}
}

// TestRolesInNamespace: the roles of a namespace suffice for all that is done in it, and are of no use in
// another one. The controls: roles of the default namespace and of another one allow none of it, and those of
// the namespace nothing of the default one.
func TestRolesInNamespace(t *testing.T) {
	s := serve(t)
	command := commander(t, s)
	command(0, "table create")
	s.space = "team-a"
	lim, err := limits.New(dynamo.New(s.client(), testTable, inSpace(s)...))
	if err == nil { // for lists
		user := limits.User{ID: "9", Project: limits.Project{ID: "7"}}
		_, err = lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{})
	}
	if err != nil {
		t.Fatal(err)
	}
	s.take()
	sent := map[infra.Role][]request{}
	change(command)
	setPlans(t, s)
	setNames(t, s)
	sent[infra.Admin] = s.take()
	work(t, s, command, dynamo.New(s.client(), testTable, inSpace(s)...))
	useNames(t, dynamo.New(s.client(), testTable, inSpace(s)...))
	sent[infra.Acquire] = s.take()
	see(command)
	seePlans(t, s)
	seeNames(t, s)
	sent[infra.ReadOnly] = s.take()
	aggregate(command)
	sent[infra.Aggregator] = s.take()
	sent[infra.RegionSync] = syncRegions(t, s, command)
	for _, role := range infra.Roles() {
		own, items := policyIn(t, role, "team-a"), 0
		for _, r := range sent[role] {
			for _, a := range r.asks {
				if !own.allows(a, map[string]bool{}) {
					t.Errorf("%s may not %s %s %q", role, a.action, a.resource, a.keys)
				}
				if len(a.keys) == 0 || strings.HasPrefix(a.action, "s3:") {
					continue
				}
				items++
				for _, other := range []string{"", "team-b", "team"} {
					if policyIn(t, role, other).allows(a, map[string]bool{}) {
						t.Errorf("%s of namespace %q may %s %q", role, other, a.action, a.keys)
					}
				}
			}
		}
		if items == 0 {
			t.Errorf("%s asked for no item", role)
		}
		for _, key := range []string{
			"ENTITY#user-1", "KIND#user", "PLANS#", "SYSTEM#", "RESOURCE#gpt-4", "team-b#ENTITY#user-1",
			"CATALOG#model",
		} {
			for _, action := range []string{
				"GetItem", "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem",
			} {
				for _, on := range []string{testARN, testARN + "/index/GSI2"} {
					if own.allows(ask{action, on, []string{key}}, map[string]bool{}) {
						t.Errorf("%s of team-a may %s %s", role, action, key)
					}
				}
			}
		}
		if own.allows(ask{"Scan", testARN, nil}, map[string]bool{}) {
			t.Errorf("%s of team-a may scan the table", role)
		}
	}
}

// aggregate runs the poller, from nothing and from where it was; a Lambda function on the stream calls no
// more, by itself and by who reads the stream for it.
func aggregate(sluice func(exit int, line string)) {
	sluice(0, "aggregate --once")
	sluice(0, "aggregate --once")
}

// syncRegions has a region begin an epoch, begin its books, and take more than what every region keeps for
// who has called meanwhile.
func syncRegions(t *testing.T, s *service, sluice func(exit int, line string)) []request {
	t.Helper()
	s.publish(t)
	for range 10 { // until it is sure of the region that has never published
		sluice(0, "region sync --once")
		s.ahead += time.Minute // a window
	}
	sluice(0, "region sync --dry-run")
	sent := s.take()
	work(t, s, sluice, dynamo.New(s.client(), testTable, inSpace(s)...))
	s.take() // that was a service
	sluice(0, "region sync --once")
	follow(t, s)
	return append(sent, s.take()...)
}

// follow reads the table's stream as regional sync does, until every shard has replied.
func follow(t *testing.T, s *service) {
	t.Helper()
	seen := images.New(nil)
	poller, err := poll.New(poll.Config{Table: testTable, Consumers: []poll.Consumer{feed.New(seen, s.space)},
		Streams: dynamodbstreams.New(memdynamo.New().Streams().Options(), func(o *dynamodbstreams.Options) {
			o.BaseEndpoint, o.HTTPClient = s.client().Options().BaseEndpoint, s.client().Options().HTTPClient
		})})
	if err != nil {
		t.Fatal(err)
	}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	go func() {
		<-seen.Ready()
		end()
	}()
	if err := poller.Run(ctx); err != nil {
		t.Fatal(err)
	}
}

// work does what a service does: on new buckets and old ones, alone and in chains, and on one whose numbers
// have changed.
func work(t *testing.T, s *service, sluice func(exit int, line string), backend store.Store) {
	t.Helper()
	ctx := t.Context()
	sluice(0, "entity put user-1 --parent project-7")
	s.take() // that was an operator
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	service := func(does func(*limits.Limiter)) {
		t.Helper()
		lim, err := limits.New(backend)
		must(err)
		must(lim.Check(ctx))
		does(lim)
		must(lim.Close(ctx))
	}
	service(func(lim *limits.Limiter) {
		for range 2 {
			lease, err := lim.GPT4.Acquire(ctx, limits.UserByID("1"), limits.GPT4Cost{TPM: 1_000})
			must(err)
			must(lease.Settle(ctx, limits.GPT4Cost{RPM: 1, TPM: 1_500}))
			batch, err := lim.Embeddings.Acquire(ctx, limits.Project{ID: "7"}, limits.EmbeddingsCost{})
			must(err)
			batch.Release(ctx)
		}
		_, err := lim.GPT4.Peek(ctx, limits.UserByID("1"))
		must(err)
	})
	_, onPlans := storetest.Open[project](t, backend, nil, withPlans(t))
	_, err := onPlans[0].Acquire(ctx, "7", storetest.Tokens{1, 0})
	must(err)
	before := s.take()
	sluice(0, "override set user gpt-4 rpm=250")
	s.take()
	service(func(lim *limits.Limiter) {
		lease, err := lim.GPT4.Acquire(ctx, limits.UserByID("1"), limits.GPT4Cost{TPM: 1})
		must(err)
		lease.Release(ctx)
	})
	s.put(before)
}

// project is an entity of the kind that withPlans puts on plans.
type project string

// Chain implements store.Entity.
func (p project) Chain(dst []store.Link) []store.Link { return append(dst, store.Link{ID: string(p)}) }

// withPlans is a resource on whose plan pro a project has other numbers.
func withPlans(t *testing.T) store.Definition {
	t.Helper()
	gpt4, _ := storetest.Generated(t)
	def := storetest.WithNumbers(gpt4, 1, storetest.UserRPM, storetest.UserTPM)
	def.Numbers.Kinds[0].Name, def.Numbers.Kinds[0].Prefix = "project", "project-"
	def.Numbers.Kinds[0].Parent = store.NoParent
	def.Numbers.Plans = &store.Plans{Names: []string{"pro"}, Limits: [][][]bucket.Limit{{nil}}}
	return def
}

// setPlans changes the numbers of a plan at run time, and puts an entity on it.
func setPlans(t *testing.T, s *service) {
	t.Helper()
	spec, client := withPlans(t).Spec(), inNamespace(t, s)
	limits := store.FullOverride("pro.project", spec.Kinds[0].Limits)
	overrides := operator.NewOverrides(client, testTable, time.Now)
	if _, err := overrides.Set(t.Context(), spec, limits); err != nil {
		t.Fatal(err)
	}
	members := operator.NewMembers(client, testTable, time.Now)
	if err := members.SetPlan(t.Context(), "project-7", "pro", nil); err != nil {
		t.Fatal(err)
	}
}

// inNamespace returns a client of the namespace of s.
func inNamespace(t *testing.T, s *service) dynamo.API {
	t.Helper()
	if s.space == "" {
		return s.client()
	}
	client, err := operator.InNamespace(s.client(), s.space)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// seePlans reads the numbers of a plan.
func seePlans(t *testing.T, s *service) {
	t.Helper()
	overrides := operator.NewOverrides(inNamespace(t, s), testTable, time.Now)
	if _, err := overrides.Get(t.Context(), withPlans(t).Spec(), "pro.project"); err != nil {
		t.Fatal(err)
	}
}

// TestOperations holds the operations that alarms watch against those that a service calls: no more, and none
// is forgotten. None watches the queries of catalogs: what a service remembers of one stays in use.
func TestOperations(t *testing.T) {
	s := serve(t)
	command := commander(t, s)
	administer(t, s, command)
	s.take()
	work(t, s, command, dynamo.New(s.client(), testTable))
	called := map[string]bool{}
	for _, r := range s.take() {
		if !strings.HasPrefix(r.operation, "Describe") { // Check's, once, before serving
			called[r.operation] = true
		}
	}
	watched := map[string]int{}
	for _, alarm := range readCloudFormation(t,
		string(rendered(t, infra.CloudFormation, definitions()["on-demand"]))).Alarms {
		if _, operation, ok := strings.Cut(alarm, " Operation "); ok {
			watched[operation]++
		}
	}
	for operation := range called {
		if watched[operation] != 2 { // throttled, and failed
			t.Errorf("%d alarms watch %s, want 2", watched[operation], operation)
		}
	}
	for operation := range watched {
		if !called[operation] {
			t.Errorf("an alarm watches %s, which no service calls", operation)
		}
	}
	if len(called) == 0 {
		t.Error("nothing was called")
	}
}
