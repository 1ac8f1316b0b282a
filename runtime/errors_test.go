package runtime_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

func TestErrorTexts(t *testing.T) {
	reset := errors.New("connection reset")
	for _, test := range []struct {
		name string
		err  error
		want string
	}{
		{"denied", &runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 10,
			Available: 3, RetryAfter: 90 * time.Second},
			"sluice: gpt-4 denied for user-1: tpm has 3 of 10 tokens, retry after 1m30s"},
		{"denied until a grant", &runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "credits",
			Requested: 10, Available: 3, RetryAfter: store.UntilGrant},
			"sluice: gpt-4 denied for user-1: credits has 3 of 10 tokens, until a Grant adds to it"},
		{"denied by the floor", &runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm",
			Requested: 10, Available: 3, RetryAfter: 90 * time.Second, Unsynced: true},
			"sluice: gpt-4 denied for user-1: tpm has 3 of 10 tokens, retry after 1m30s, " +
				"by the floor of a region in which regional sync has never run"},
		{"denied money", &runtime.DeniedError{Resource: "gpt-4", Entity: "user-1", Limit: "day", Unit: "USD",
			Requested: int64(4 * money.Unit / 1000), Available: int64(25 * money.Cent), RetryAfter: time.Hour},
			"sluice: gpt-4 denied for user-1: day has 0.25 of 0.004 USD, retry after 1h0m0s"},
		{"cost exceeds burst", &runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-1", Limit: "tpm",
			Requested: 11, Burst: 10},
			"sluice: gpt-4 for user-1: cost of 11 tpm exceeds the 10 of a full bucket and can never be served: " +
				"split the call, or raise the limit"},
		{"cost exceeds a budget", &runtime.CostTooLargeError{Resource: "gpt-4", Entity: "user-1", Limit: "day",
			Unit: "USD", Requested: 5_001, Burst: 5_000},
			"sluice: gpt-4 for user-1: cost of 0.000005001 USD exceeds 0.000005 USD, the capacity of day, " +
				"and can never be served: split the call, or raise the capacity"},
		{"invalid", &runtime.InvalidError{Resource: "gpt-4", Field: "id of user", Value: "a\n", Reason: "is bad"},
			`sluice: gpt-4: id of user "a\n" is bad`},
		{"invalid, no value", &runtime.InvalidError{Resource: "gpt-4", Field: "cost", Reason: "is empty"},
			"sluice: gpt-4: cost is empty"},
		{"invalid, 40 runes", &runtime.InvalidError{Resource: "gpt-4", Field: "id", Value: strings.Repeat("日", 40),
			Reason: "is bad"},
			`sluice: gpt-4: id "` + strings.Repeat("日", 40) + `" is bad`},
		{"invalid, 41 runes", &runtime.InvalidError{Resource: "gpt-4", Field: "id", Value: strings.Repeat("日", 41),
			Reason: "is bad"},
			`sluice: gpt-4: id "` + strings.Repeat("日", 40) + `..." is bad`},
		{"unavailable", &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: reset},
			"sluice: gpt-4: store unavailable after 1 attempt: connection reset"},
		{"unavailable, cause alone", &runtime.UnavailableError{Err: reset},
			"sluice: store unavailable: connection reset"},
		{"unavailable, not sent", &runtime.UnavailableError{Resource: "gpt-4", Err: store.ErrNotSent},
			"sluice: gpt-4: store unavailable: time was up behind an earlier write to the bucket, or before a turn " +
				"was free"},
		{"setup", &runtime.SetupError{What: "no table", Do: "create it", Err: reset},
			"sluice: no table; create it: connection reset"},
		{"setup, alone", &runtime.SetupError{What: "no table"}, "sluice: no table"},
		{"contended", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8},
			"sluice: gpt-4 for user-1: contended after 8 attempts: the write lost to other writes, " +
				"nothing was charged: try again"},
		{"contended once", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 1},
			"sluice: gpt-4 for user-1: contended after 1 attempt: the write lost to other writes, " +
				"nothing was charged: try again"},
		{"contended by transactions", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1",
			Attempts: 8, Conflicts: 8},
			"sluice: gpt-4 for user-1: contended after 8 attempts: the write lost to transactions on the bucket, " +
				"nothing was charged: try again"},
		{"contended by transactions, others' too", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1",
			Attempts: 1, Conflicts: 8},
			"sluice: gpt-4 for user-1: contended after 1 attempt: the write lost to transactions on the bucket, " +
				"nothing was charged: try again"},
		{"contended by both", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1", Attempts: 8,
			Conflicts: 3},
			"sluice: gpt-4 for user-1: contended after 8 attempts: the write lost to other writes and to " +
				"transactions on the bucket, nothing was charged: try again"},
		{"contended, no attempt", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1"},
			"sluice: gpt-4 for user-1: contended before its first attempt: an earlier call's write lost to other " +
				"writes, nothing was charged: try again"},
		{"contended by transactions, no attempt", &runtime.ContendedError{Resource: "gpt-4", Entity: "user-1",
			Conflicts: 2},
			"sluice: gpt-4 for user-1: contended before its first attempt: an earlier call's write lost to " +
				"transactions on the bucket, nothing was charged: try again"},
		{"queue full", &runtime.QueueFullError{Resource: "gpt-4", Entity: "user-1", MaxWaiters: 10_000},
			"sluice: gpt-4 for user-1: 10000 calls wait already, as many as WithMaxWaiters allows: turn the " +
				"call away, or raise WithMaxWaiters"},
		{"a plan of a newer program", &runtime.UnknownPlanError{Entity: "org-7", Plan: "gold"},
			"sluice: org-7 is on plan gold, which limits.yaml of this program does not have: update the program"},
		{"an override in conflict", &runtime.ConflictError{Resource: "gpt-4", At: "user-1"},
			"sluice: the override of gpt-4 at user-1 has been changed meanwhile: read it again"},
		{"a heartbeat in conflict", &runtime.ConflictError{At: "heartbeat of regional sync"},
			"sluice: the heartbeat of regional sync has been changed meanwhile: read it again"},
	} {
		t.Run(test.name, func(t *testing.T) { equal(t, "text", test.err.Error(), test.want) })
	}
}

func TestErrorsUnwrap(t *testing.T) {
	reset := errors.New("connection reset")
	for _, err := range []error{&runtime.UnavailableError{Err: reset}, &runtime.SetupError{Err: reset}} {
		if !errors.Is(err, reset) {
			t.Errorf("%T hides its cause", err)
		}
	}
	if err := errors.Unwrap(&runtime.DeniedError{}); err != nil {
		t.Errorf("a denial wraps %v", err)
	}
	if errors.Is(&runtime.SetupError{}, context.DeadlineExceeded) {
		t.Error("a SetupError without cause is something")
	}
}

// image has 60 rpm and 6000 tpm as bounds, and these tokens at 0.
func image(rpm, tpm int64) *bucket.Image {
	img := &bucket.Image{Balances: bucket.Full(gpt4().spec.Kinds[0].Limits), Missing: make([]bool, 2)}
	img.Balances[0].Tokens, img.Balances[1].Tokens = rpm, tpm
	return img
}

// limitName is a generated limit.
type limitName struct{ resource, name string }

func (l limitName) Resource() string { return l.resource }
func (l limitName) String() string   { return l.name }

// TestBy: a denial is by each limit that refused, of its resource alone, whether or not it is the longest.
func TestBy(t *testing.T) {
	denied := store.AddRefusal(nil, store.Refusal{Resource: "gpt-4", Limit: "rpm", RetryAfter: time.Second})
	denied = store.AddRefusal(denied, store.Refusal{Resource: "images", Limit: "ipm", RetryAfter: time.Minute})
	ofName := store.AddRefusal(nil, store.Refusal{Resource: "model/gpt-5", Template: "model", Limit: "rpm"})
	for _, test := range []struct {
		denied *store.DeniedError
		limit  store.LimitName
		want   bool
	}{
		{denied, limitName{"gpt-4", "rpm"}, true},
		{denied, limitName{"images", "ipm"}, true},
		{denied, limitName{"gpt-4", "tpm"}, false},
		{denied, limitName{"images", "rpm"}, false},
		{denied, limitName{}, false},
		{denied, nil, false},
		{ofName, limitName{"model", "rpm"}, true},
		{ofName, limitName{"model", "tpm"}, false},
		{ofName, limitName{"", "rpm"}, false},
		{&store.DeniedError{Resource: "gpt-4", Limit: "rpm"}, limitName{"gpt-4", "rpm"}, true},
	} {
		if got := test.denied.By(test.limit); got != test.want {
			t.Errorf("%+v by %v: %v, want %v", test.denied, test.limit, got, test.want)
		}
	}
}

// TestNameOf: a number that is no limit's has no name.
func TestNameOf(t *testing.T) {
	type limit uint8
	for l, want := range map[limit]string{0: "", 1: "rpm", 2: "tpm", 3: "", 255: ""} {
		if got := store.NameOf(l, "rpm", "tpm"); got != want {
			t.Errorf("%d is %q, want %q", l, got, want)
		}
	}
}

func TestRefuse(t *testing.T) {
	spec := gpt4().spec
	missing := image(0, 0)
	missing.Missing[1] = true
	open, over := image(0, 1_000_000), image(0, 1_000_000)
	open.Balances[0].Refill, over.Balances[0].Refill = 0, 0
	open.Balances[0].Ends = 90_000_000
	for _, test := range []struct {
		name  string
		img   *bucket.Image
		cost  []int64
		limit string // which refuses longest; "" is none
		wait  time.Duration
		count int
	}{
		{"enough", image(1000, 1000), []int64{1000, 1000}, "", 0, 0},
		{"one is short", image(999, 1000), []int64{1000, 1000}, "rpm", time.Millisecond, 1},
		{"both are short: the first", image(-9000, -999_000), []int64{1000, 1000}, "rpm", 10 * time.Second, 2},
		{"the longer", image(0, -999_000), []int64{1000, 1000}, "tpm", 10 * time.Second, 2},
		{"a cost of 0 is not guarded", image(-1, -1), []int64{0, 0}, "", 0, 0},
		{"nor what is given back", image(-1, -1), []int64{-1, -1}, "", 0, 0},
		{"nor a limit that is not there", missing, []int64{0, 1000}, "", 0, 0},
		{"an open window", open, []int64{1000, 1000}, "rpm", 25 * time.Hour, 1},
		{"a window that is over", over, []int64{1000, 1000}, "", 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			denied := store.Refuse(nil, spec, "user-1", test.img, test.cost, 0)
			if denied == nil {
				equal(t, "refused by", "", test.limit)
				return
			}
			equal(t, "limit", denied.Limit, test.limit)
			equal(t, "retry after", denied.RetryAfter, test.wait)
			equal(t, "refusals", len(denied.Refusals), test.count)
		})
	}
}

// TestRefuseAlongAChain: the refusals of all buckets come together, and the longest stands for them.
func TestRefuseAlongAChain(t *testing.T) {
	spec := gpt4().spec
	denied := store.Refuse(nil, spec, "user-1", image(0, 500), []int64{1000, 1000}, 0)
	denied = store.Refuse(denied, spec, "project-1", image(60_000, -50_500), []int64{1000, 1000}, 0)
	denied = store.Refuse(denied, spec, "org-1", image(60_000, 6_000_000), []int64{1000, 1000}, 0)
	want := &runtime.DeniedError{
		Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Requested: 1, Available: 0, RetryAfter: time.Second,
		Refusals: []runtime.Refusal{
			{Resource: "gpt-4", Entity: "user-1", Limit: "rpm", Requested: 1, RetryAfter: time.Second},
			{Resource: "gpt-4", Entity: "user-1", Limit: "tpm", Requested: 1, RetryAfter: 5 * time.Millisecond},
			{Resource: "gpt-4", Entity: "project-1", Limit: "tpm", Requested: 1, RetryAfter: 515 * time.Millisecond},
		},
	}
	if diff := cmp.Diff(want, denied, cmpopts.IgnoreUnexported(runtime.DeniedError{})); diff != "" {
		t.Errorf("denial (-want +got):\n%s", diff)
	}
}

func TestExceeds(t *testing.T) {
	spec := gpt4().spec
	missing := image(0, 0)
	missing.Missing[0] = true
	for _, test := range []struct {
		name string
		img  *bucket.Image
		cost []int64
		want string
	}{
		{"at the burst", image(0, 0), []int64{60_000, 6_000_000}, ""},
		{"above", image(0, 0), []int64{61_000, 6_000_001}, "exceeds burst gpt-4 user-1 rpm 61/60"},
		{"a limit that is not there", missing, []int64{61_000, 0}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			check(t, store.Exceeds(spec, "user-1", test.img, test.cost, 0), test.want)
		})
	}
}

// TestRefuseAtTheEndOfTime: where the wait saturates at 0, there is a limit to name all the same.
func TestRefuseAtTheEndOfTime(t *testing.T) {
	img := image(0, 0)
	img.Refilled = math.MaxInt64
	denied := store.Refuse(nil, gpt4().spec, "user-1", img, []int64{1000, 0}, math.MaxInt64)
	check(t, denied, "denied gpt-4 user-1 rpm 0/1 0s")
}
