package runtime_test

import (
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/runtime"
)

// TestInput: each way to ask says what is wrong with it, and nothing reaches the store.
func TestInput(t *testing.T) {
	for _, test := range []struct {
		name   string
		entity entity
		cost   cost
		want   string
	}{
		{"nil entity", nil, cost{TPM: 1}, "invalid gpt-4 entity is nil"},
		{"no id", user{}, cost{TPM: 1}, "invalid gpt-4 id user is empty: set the entity's ID"},
		{"long id", project{strings.Repeat("x", 257)}, cost{TPM: 1}, `invalid gpt-4 id project "` +
			strings.Repeat("x", 257) +
			`" has 257 bytes, more than 256: use a shorter id, or a hash of it`},
		{"#", user{"a#b"}, cost{TPM: 1},
			`invalid gpt-4 id user "a#b"`},
		{"invalid UTF-8", user{"a\xff"}, cost{TPM: 1},
			`invalid gpt-4 id user "a\xff" is not valid UTF-8 at byte offset 1: encode it, in hex for example`},
		{"an escape sequence", user{"1\x1b[2J"}, cost{TPM: 1},
			`invalid gpt-4 id user "1\x1b[2J" has the control character U+001B at byte offset 1: encode it, in hex ` +
				`for example`},
		{"negative", user{"1"}, cost{TPM: -1},
			`invalid gpt-4 cost tpm "-1" is negative: to give tokens back, settle for less or release the lease`},
		{"most negative", user{"1"}, cost{RPM: math.MinInt64},
			`invalid gpt-4 cost rpm "-9223372036854775808" comes from a negative count of a usage: ` +
				`pass counts from 0 up`},
		{"too much", user{"1"}, cost{TPM: 1_000_000_000_001},
			`invalid gpt-4 cost tpm "1000000000001" is above 1000000000000, the most that one call can take`},
		{"overflow", user{"1"}, cost{TPM: math.MaxInt64},
			`invalid gpt-4 cost tpm "9223372036854775807" is above 1000000000000, the most that one call can take`},
		{"nothing", project{"1"}, cost{}, "invalid gpt-4 cost is empty: set at least one limit's cost"},
	} {
		t.Run(test.name, func(t *testing.T) {
			store := &fake{}
			lim, r := open(t, store)
			lease, err := r.Acquire(t.Context(), test.entity, test.cost)
			checkReason(t, err, test.want)
			if _, ok := errors.AsType[*runtime.InvalidError](err); !ok || lease != nil {
				t.Errorf("lease %v and a %T", lease, err)
			}
			_, err = r.Wait(t.Context(), test.entity, test.cost)
			checkReason(t, err, test.want)
			checkReason(t, r.Do(t.Context(), test.entity, test.cost, nil), test.want)
			if !strings.Contains(test.want, "cost") {
				_, err = r.Peek(t.Context(), test.entity)
				checkReason(t, err, test.want)
			}
			equal(t, "calls to the store", store.count(), 0)
			equal(t, "lines", runtime.Waiting(lim), 0)
		})
	}
}

func TestInputAtItsBounds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{})
		for _, id := range []string{strings.Repeat("x", 256), "a/b:c d", "-", "日本"} {
			acquire(t, r, user{id}, cost{TPM: 1})
		}
		_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 1_000_000_000_000})
		if _, ok := errors.AsType[*runtime.CostTooLargeError](err); !ok {
			t.Errorf("the most that one call can take: %v, want it refused by the burst alone", err)
		}
		// per_call stands for a 0, so that a user's empty cost is not empty.
		equal(t, "cost", acquire(t, r, user{"2"}, cost{}).Cost(), cost{RPM: 1})
	})
}

func TestInvalidErrorFields(t *testing.T) {
	_, r := open(t, &fake{})
	_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: -5})
	invalid, ok := errors.AsType[*runtime.InvalidError](err)
	if !ok {
		t.Fatal(err)
	}
	equal(t, "error", *invalid, runtime.InvalidError{
		Resource: "gpt-4", Field: "cost of tpm", Value: "-5",
		Reason: "is negative: to give tokens back, settle for less or release the lease",
	})
}
