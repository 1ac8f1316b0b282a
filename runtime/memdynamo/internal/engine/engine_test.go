package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// rig is an engine on a clock that stands still unless it is pushed.
type rig struct {
	*engine.DB
	t testing.TB

	mu         sync.Mutex // guards all below
	now        time.Time
	conditions engine.Conditions
	hold       func() func(context.Context) error
	bills      []engine.Bill
}

// newRig returns an engine in fair weather.
func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	random := rand.New(rand.NewPCG(1, 2))
	r.DB = engine.New(engine.Config{
		Now: func() time.Time {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.now
		},
		Rand: random.Float64,
		Conditions: func() engine.Conditions {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.conditions
		},
		Hold: func() func(context.Context) error {
			r.mu.Lock()
			defer r.mu.Unlock()
			if r.hold == nil {
				return nil
			}
			return r.hold()
		},
		Bill: func(b engine.Bill) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.bills = append(r.bills, b)
		},
	})
	return r
}

// under changes the weather.
func (r *rig) under(c engine.Conditions) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.conditions = c
}

// pass pushes the clock.
func (r *rig) pass(d time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now = r.now.Add(d)
}

// billed returns the bills since it was last asked.
func (r *rig) billed() []engine.Bill {
	r.mu.Lock()
	defer r.mu.Unlock()
	bills := r.bills
	r.bills = nil
	return bills
}

// short is a text that may be long, for messages.
func short(text string) string {
	if len(text) > 300 {
		return text[:300] + "..."
	}
	return text
}

// do runs an operation that must succeed, and returns its output.
func (r *rig) do(operation, input string) string {
	r.t.Helper()
	output, err := r.Do(r.t.Context(), operation, []byte(input))
	if err != nil {
		r.t.Fatalf("%s %s: %v", operation, short(input), err)
	}
	return string(output)
}

// gives holds that an operation's output is that JSON.
func (r *rig) gives(operation, input, want string) {
	r.t.Helper()
	if diff := jsonDiff(want, r.do(operation, input)); diff != "" {
		r.t.Errorf("%s %s: output (-want +got):\n%s", operation, short(input), diff)
	}
}

// fails holds that an operation fails with that exception, and returns what it carries beside its message, as
// JSON.
func (r *rig) fails(operation, input, code, message string) (fields string) {
	r.t.Helper()
	output, err := r.Do(r.t.Context(), operation, []byte(input))
	e, ok := errors.AsType[*exception.Error](err)
	if !ok {
		r.t.Fatalf("%s %s: got %s, %v; want %s", operation, short(input), output, err, code)
	}
	if e.Code != code || e.Message != message {
		r.t.Errorf("%s %s: exception\n got %s: %s\nwant %s: %s", operation, short(input), e.Code, e.Message, code,
			message)
	}
	if e.Fields == nil {
		return "{}"
	}
	return "{" + string(e.Fields.AppendFields(nil)[1:]) + "}"
}

// invalid is fails with a ValidationException. Cases that the conformance corpus records are not tested here
// again.
func (r *rig) invalid(operation, input, message string) {
	r.t.Helper()
	r.fails(operation, input, exception.Validation, message)
}

// jsonDiff compares two texts of JSON.
func jsonDiff(want, got string) string {
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		return fmt.Sprintf("want is no JSON: %v: %s", err, want)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		return fmt.Sprintf("got is no JSON: %v: %s", err, got)
	}
	return cmp.Diff(w, g)
}

// Tables of tests.
const (
	// plainTable has a hash key, pk of type S.
	plainTable = `{"TableName":"plain","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}`
	// indexedTable has the key pk of type S and sk of type N. Its two global indexes are on g of type S: one of
	// keys only and one of all attributes. Its local index is on l of type S and includes a.
	indexedTable = `{"TableName":"indexed","BillingMode":"PAY_PER_REQUEST",
		"AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk",
		"AttributeType":"N"},
			{"AttributeName":"g","AttributeType":"S"},{"AttributeName":"l","AttributeType":"S"}],
		"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
		"GlobalSecondaryIndexes":[
			{"IndexName":"keys","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],
			"Projection":{"ProjectionType":"KEYS_ONLY"}},
			{"IndexName":"all","KeySchema":[{"AttributeName":"g","KeyType":"HASH"},{"AttributeName":"sk",
			"KeyType":"RANGE"}],
				"Projection":{"ProjectionType":"ALL"}}],
		"LocalSecondaryIndexes":[
			{"IndexName":"local","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"l",
			"KeyType":"RANGE"}],
				"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["a"]}}]}`
)

// newTables returns an engine with both tables.
func newTables(t testing.TB) *rig {
	t.Helper()
	r := newRig(t)
	r.do("CreateTable", plainTable)
	r.do("CreateTable", indexedTable)
	r.billed()
	return r
}
