package dynamo_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	kinds "github.com/sluice-go/sluice/gen/testdata/golden/kinds/out"
	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/conformance/ondynamo"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// TestLimitEndsForAKind deploys a schema in which a user has rpm alone, and a project tpm, after one in which
// both have both. A reshape removes what buckets hold of the others. The old binary, which goes on, neither
// charges those nor brings them back.
func TestLimitEndsForAKind(t *testing.T) {
	e := ondynamo.New(t)
	before, err := generated.New(dynamo.New(e.Client, e.Name), runtime.WithClock(e))
	if err != nil {
		t.Fatal(err)
	}
	after, err := kinds.New(dynamo.New(e.Client, e.Name), runtime.WithClock(e))
	if err != nil {
		t.Fatal(err)
	}
	holds := func(when, entity string, want ...string) {
		t.Helper()
		out, err := e.Client.GetItem(t.Context(), &dynamodb.GetItemInput{TableName: &e.Name,
			Key: storetest.BucketKey(entity, generated.GPT4)})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for attr, v := range out.Item {
			if limit, ok := strings.CutSuffix(strings.TrimPrefix(attr, "b_"), "_tk"); ok {
				got = append(got, fmt.Sprintf("%s %d", limit, storetest.Number(v)/1000))
			}
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %s holds %v, want %v", when, entity, got, want)
		}
	}
	old := generated.User{ID: "1", Project: generated.Project{ID: "2"}}
	if _, err := before.GPT4.Acquire(t.Context(), old, generated.GPT4Cost{RPM: 3, TPM: 100}); err != nil {
		t.Fatal(err)
	}
	holds("before", "user-1", "rpm 97", "tpm 14900")
	holds("before", "project-2", "rpm 997", "tpm 149900")

	user := kinds.User{ID: "1", Project: kinds.Project{ID: "2"}}
	lease, err := after.GPT4.Acquire(t.Context(), user, kinds.GPT4Cost{TPM: 50})
	if err != nil {
		t.Fatal(err)
	}
	holds("after", "user-1", "rpm 59")
	holds("after", "project-2", "tpm 49950")
	if err := lease.Settle(t.Context(), kinds.GPT4Cost{TPM: 20}); err != nil {
		t.Fatal(err)
	}
	holds("settled", "user-1", "rpm 59")
	holds("settled", "project-2", "tpm 49980")

	late, err := before.GPT4.Acquire(t.Context(), old, generated.GPT4Cost{RPM: 2, TPM: 10})
	if err != nil {
		t.Fatal(err)
	}
	holds("by the old binary", "user-1", "rpm 57")
	holds("by the old binary", "project-2", "tpm 49970")
	late.Release(t.Context())
	holds("released by the old binary", "user-1", "rpm 59")
	holds("released by the old binary", "project-2", "tpm 49980")
}
