package dynamo

import (
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// asker is a client's Retryer that counts how often it is asked.
type asker struct {
	aws.NopRetryer
	asked *atomic.Int64
}

// MaxAttempts implements aws.Retryer.
func (a asker) MaxAttempts() int {
	a.asked.Add(1)
	return a.NopRetryer.MaxAttempts()
}

// TestClientsRetriesAreOff: whatever Retryer a client has, the store's calls do not use it.
func TestClientsRetriesAreOff(t *testing.T) {
	gpt4, embeddings := generated(t)
	e := newEngine(t)
	var asked atomic.Int64
	o := e.client.Options()
	o.Retryer = asker{asked: &asked}
	client := dynamodb.New(o)

	h := e.house(t, client, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)),
		family(gpt4, store.CascadeCompensated, []bucket.Limit{userRPM, userTPM}, []bucket.Limit{userRPM, userTPM}))
	lease := h.acquire(t, alicesHome, 1)
	h.acquire(t, member{project: "1"}, 1)
	lease.Release(t.Context())
	if _, err := h.at[1].Acquire(t.Context(), alicesHome, tokens{1, 1}); err != nil {
		t.Fatal(err)
	}
	if _, err := h.at[0].Peek(t.Context(), alicesHome); err != nil {
		t.Fatal(err)
	}
	members := operator.NewMembers(client, e.table, store.SystemClock().Now)
	if err := members.Put(t.Context(), store.Member{Entity: "user-1", Parent: "project-1",
		Cascade: true}); err != nil {
		t.Fatal(err)
	}
	if _, found, err := members.Get(t.Context(), "user-1"); !found || err != nil {
		t.Fatal(found, err)
	}
	for _, err := range members.Children(t.Context(), "project-1") {
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := members.Delete(t.Context(), "user-1"); err != nil {
		t.Fatal(err)
	}
	overrides := e.operator(client, 0)
	set(t, overrides, stored("user-1", "", 5, 0))
	for _, err := range overrides.List(t.Context(), rates()) {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("the client's Retryer was asked %d times", n)
	}

	// The control: a call that leaves it in place asks it.
	if _, err := client.DescribeTable(t.Context(),
		&dynamodb.DescribeTableInput{TableName: &e.table}); err != nil ||
		asked.Load() == 0 {
		t.Errorf("%v; the Retryer was asked %d times by a call of its own", err, asked.Load())
	}
}
