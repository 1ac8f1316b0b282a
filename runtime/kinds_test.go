package runtime_test

import (
	"errors"
	"testing"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestCostWithoutBucket: a cost of a limit that no kind of the chain has is refused, whatever the call, and
// charges nothing.
func TestCostWithoutBucket(t *testing.T) {
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(t.Context(), client, "limits"); err != nil {
		t.Fatal(err)
	}
	l, err := kinds.New(dynamo.New(client, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Alone.Acquire(t.Context(), kinds.User{ID: "1"}, kinds.AloneCost{TPM: 5})
	equal(t, "no cascade", err.Error(), `sluice: alone: cost of tpm "5" has no bucket to charge: calls for `+
		`kind user charge none with limit tpm, which is of kind project (kinds in limits.yaml): leave it out`)

	refused := func(what string, err error) {
		t.Helper()
		invalid, ok := errors.AsType[*runtime.InvalidError](err)
		if !ok || invalid.Field != "cost of rpm" || invalid.Value != "2" {
			t.Errorf("%s: %v, want an InvalidError about 2 rpm", what, err)
		}
	}
	team := kinds.Team{ID: "1", Org: kinds.Org{ID: "2"}}
	_, err = l.Model.Acquire(t.Context(), team, kinds.ModelCost{RPM: 2})
	refused("acquire", err)
	_, err = l.Model.Wait(t.Context(), team, kinds.ModelCost{RPM: 2})
	refused("wait", err)
	lease, err := l.Model.Acquire(t.Context(), team, kinds.ModelCost{RPD: 3})
	check(t, err, "")
	equal(t, "cost", lease.Cost(), kinds.ModelCost{TPM: 10, RPD: 3}) // per_call of a team
	refused("more", lease.More(t.Context(), kinds.ModelCost{RPM: 2}))
	refused("settle", lease.Settle(t.Context(), kinds.ModelCost{RPM: 2}))
	check(t, lease.Settle(t.Context(), kinds.ModelCost{RPD: 1}), "")
}

// TestExplainWithoutLimit: a limit that the kind does not have is decided by nothing.
func TestExplainWithoutLimit(t *testing.T) {
	client := memdynamo.New().Client()
	if _, err := operator.CreateTable(t.Context(), client, "limits"); err != nil {
		t.Fatal(err)
	}
	l, err := kinds.New(dynamo.New(client, "limits"))
	if err != nil {
		t.Fatal(err)
	}
	said, err := l.Config.GPT4.Explain(t.Context(), kinds.User{ID: "1"})
	check(t, err, "")
	last := said[len(said)-1]
	equal(t, "decided by the schema", len(last.Wins), 1)
	equal(t, "tpm", last.Limits.TPM, nil)
	equal(t, "rpm", last.Limits.RPM.Capacity, 60)
}
