package store_test

import (
	"fmt"
	"testing"
	"time"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

// TestPrinted holds the text of generated costs, limits and entities, alone and within others.
func TestPrinted(t *testing.T) {
	user := generated.User{ID: "1", Project: generated.ProjectByID("2")}
	for _, c := range []struct {
		value any
		want  string
	}{
		{generated.GPT4Cost{RPM: 1, TPM: 9999}, "GPT4Cost{RPM:1 TPM:9999}"},
		{generated.EmbeddingsCost{}, "EmbeddingsCost{RPS:0}"},
		{[]generated.GPT4Cost{{TPM: -5}}, "[GPT4Cost{RPM:0 TPM:-5}]"},
		{generated.GPT4Limits{}, "GPT4Limits{}"},
		{
			generated.GPT4Limits{TPM: &runtime.Rate{Capacity: 600, Every: time.Minute}},
			"GPT4Limits{TPM:{Capacity:600 Every:1m0s}}",
		},
		{generated.GPT4Limits{RPM: &runtime.Rate{}}, "GPT4Limits{RPM:{}}"}, // set, and refused
		{windows.GatewayLimits{TPD: new(int64(7))}, "GatewayLimits{TPD:7}"},
		{user, "user-1"},
		{struct{ E generated.Entity }{user}, "{user-1}"},
		{generated.Org{ID: "a\x1b[2J\n"}, `"org-a\x1b[2J\n"`},
	} {
		if got := fmt.Sprint(c.value); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}
