package differential_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
)

// report counts what was run: a run that occurred only errors, or never an operation, has shown little.
type report struct {
	mu       sync.Mutex
	total    int
	kinds    map[string]map[string]int // operations by kind and outcome: "ok" or the exception's code
	reasons  map[string]int            // why transactions were cancelled
	messages map[string]int
	occurred map[string]int // known differences by id
}

func newReport() *report {
	return &report{kinds: map[string]map[string]int{}, reasons: map[string]int{}, messages: map[string]int{},
		occurred: map[string]int{}}
}

// ran notes what DynamoDB replied to an operation.
func (r *report) ran(o operation, replies []reply) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	last := replies[len(replies)-1]
	outcome := last.Code
	if outcome == "" {
		outcome = "ok"
	}
	if r.kinds[o.kind()] == nil {
		r.kinds[o.kind()] = map[string]int{}
	}
	r.kinds[o.kind()][outcome]++
	if last.Message != "" {
		r.messages[o.kind()+": "+last.Message]++
	}
	reasons, _ := last.Body["CancellationReasons"].([]any)
	for _, reason := range reasons {
		fields, _ := reason.(map[string]any)
		r.reasons[fmt.Sprint(fields["Code"])]++
	}
}

// explained notes known differences.
func (r *report) explained(ids []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, id := range ids {
		r.occurred[id]++
	}
}

// outcomes counts all operations by outcome.
func (r *report) outcomes() map[string]int {
	sum := map[string]int{}
	for _, outcomes := range r.kinds {
		for outcome, n := range outcomes {
			sum[outcome] += n
		}
	}
	return sum
}

// covers fails the test if an operation did not both succeed and fail, or an exception or a reason never
// came.
func (r *report) covers(t testing.TB) {
	t.Helper()
	for _, kind := range []string{
		"PutItem", "GetItem", "UpdateItem", "DeleteItem", "BatchGetItem", "BatchWriteItem",
		"TransactWriteItems", "Query", "Scan",
	} {
		if r.kinds[kind]["ok"] == 0 || len(r.kinds[kind]) < 2 {
			t.Errorf("%s: %s: want successes and failures", kind, counts(r.kinds[kind]))
		}
	}
	outcomes := r.outcomes()
	for _, code := range []string{
		"ValidationException", "ConditionalCheckFailedException", "TransactionCanceledException",
		"IdempotentParameterMismatchException", "ResourceNotFoundException",
	} {
		if outcomes[code] == 0 {
			t.Errorf("no operation ended in a %s", code)
		}
	}
	if outcomes["ok"] < r.total/4 {
		t.Errorf("%d of %d operations succeeded, want a quarter at least", outcomes["ok"], r.total)
	}
	for _, reason := range []string{"None", "ConditionalCheckFailed", "ValidationError"} {
		if r.reasons[reason] == 0 {
			t.Errorf("no transaction was cancelled for the reason %s", reason)
		}
	}
}

// log prints the whole report.
func (r *report) log(t testing.TB) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations: %s\n", r.total, counts(r.outcomes()))
	for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
		fmt.Fprintf(&b, "  %-18s %s\n", kind, counts(r.kinds[kind]))
	}
	fmt.Fprintf(&b, "reasons of cancelled transactions: %s\n", counts(r.reasons))
	fmt.Fprintf(&b, "different messages: %d\n", len(r.messages))
	for _, d := range allKnown() {
		fmt.Fprintf(&b, "known difference %s: occurred %d times\n", d.id, r.occurred[d.id])
	}
	t.Log(b.String())
}

func counts(m map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, m[name]))
	}
	return strings.Join(parts, ", ")
}
