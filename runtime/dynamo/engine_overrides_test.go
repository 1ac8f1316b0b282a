package dynamo

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// newFaulty is newEngine on an engine in the process of its own, on the test's clock, for what only that one
// suffers from.
func newFaulty(t testing.TB) (*engine, *memdynamo.Engine) {
	t.Helper()
	skipOnLocal(t)
	e := &engine{}
	memory := memdynamo.New(memdynamo.WithClock(&e.clock))
	e.client = memory.Client()
	e.table = dynamotest.Table(t, e.client, dynamotest.Streamless(operator.Table))
	return e, memory
}

// operator is who sets overrides, with a clock that is so many ms ahead of the engine's. Pauses take no time.
func (e *engine) operator(api wire.API, ahead int64) *operator.Overrides {
	return e.operatorWith(api, e.retrier(), ahead)
}

func (e *engine) operatorWith(api wire.API, retrier wire.Retrier, ahead int64) *operator.Overrides {
	return operator.OverridesWith(
		api,
		retrier,
		func() time.Time { return time.UnixMilli(e.clock.Now().UnixMilli() + ahead) },
	)
}

// retrier is an operator's, with pauses that take no time.
func (e *engine) retrier() wire.Retrier {
	retrier := wire.NewRetrier(e.table)
	retrier.After = e.clock.After
	return retrier
}

// rates is a resource with limits rpm and tpm.
func rates() *store.Spec {
	return &store.Spec{Resource: "gpt-4", Revision: 1, Limits: []string{"rpm", "tpm"}}
}

// stored is what a level of rates says: rpm, then tpm; 0 inherits.
func stored(at string, rev store.Revision, perMinute ...int64) store.Stored {
	s := store.Stored{At: at, Limits: make([]*bucket.Limit, 2), Revision: rev}
	for i, n := range perMinute {
		if n != 0 {
			l := bucket.Per(n, time.Minute)
			s.Limits[i] = &l
		}
	}
	return s
}

// set is a Set that succeeds.
func set(t testing.TB, o *operator.Overrides, s store.Stored) store.Revision {
	t.Helper()
	rev, err := o.Set(t.Context(), rates(), s)
	if err != nil {
		t.Fatal(err)
	}
	return rev
}

// says holds what levels of rates say.
func says(t testing.TB, o *operator.Overrides, want ...store.Stored) {
	t.Helper()
	at := make([]string, len(want))
	for i := range want {
		at[i] = want[i].At
	}
	got, err := o.Get(t.Context(), rates(), at...)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the overrides, - wanted, + stored:\n%s", diff)
	}
}

// list collects List.
func list(ctx context.Context, o *operator.Overrides) (all []store.Stored, err error) {
	for s, err := range o.List(ctx, rates()) {
		if err != nil {
			return all, err
		}
		all = append(all, s)
	}
	return all, nil
}

// rev is the revision of a write at ms since t0.
func rev(ms int64) store.Revision { return override.FormatRevision(t0 + ms) }

// TestOverrideItems holds config items attribute by attribute, at both levels and through every kind of
// change.
func TestOverrideItems(t *testing.T) {
	e := newEngine(t)
	o := e.operator(e.client, 0)
	for _, test := range []struct {
		at, holder string
	}{{"user-1", "ENTITY#user-1"}, {"user", "KIND#user"}} {
		e.clock.set(0)
		key := item.OverrideKey("gpt-4", test.at)
		item := func(ms int64, more ...string) map[string]string {
			want := map[string]string{
				"PK":  "S " + test.holder,
				"SK":  "S #CONFIG#gpt-4",
				"ver": fmt.Sprint("N ", t0+ms),
			}
			if len(more) > 0 {
				want["GSI2PK"], want["GSI2SK"] = "S CONFIG#gpt-4", "S "+test.at
			}
			for _, attr := range more {
				name, n, _ := strings.Cut(attr, "=")
				want[name] = "N " + n
			}
			return want
		}
		holdsItem := func(want map[string]string) {
			t.Helper()
			got := plain(e.get(t, key))
			if len(got["op"]) != len("S ")+12 {
				t.Errorf("op is %q", got["op"])
			}
			delete(got, "op")
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the item of %s, - wanted, + stored:\n%s", test.at, diff)
			}
		}
		rpm := func(n string) []string {
			return []string{"l_rpm_cp=" + n, "l_rpm_bx=" + n, "l_rpm_ra=" + n, "l_rpm_rp=60000"}
		}
		tpm := []string{"l_tpm_cp=7000", "l_tpm_bx=9000", "l_tpm_ra=7000", "l_tpm_rp=60000"}
		burst := bucket.Per(7, time.Minute).WithBurst(9)

		says(t, o, stored(test.at, ""))
		both := stored(test.at, "", 5)
		both.Limits[1] = &burst
		both.Revision = set(t, o, both)
		holdsItem(item(0, append(rpm("5000"), tpm...)...))
		says(t, o, both)

		e.clock.set(1000)
		one := stored(test.at, set(t, o, stored(test.at, both.Revision, 6)), 6)
		holdsItem(item(1000, rpm("6000")...))
		says(t, o, one)

		e.clock.set(2000)
		deleted := stored(test.at, set(t, o, stored(test.at, one.Revision)))
		holdsItem(item(2000))
		says(t, o, deleted)
		if deleted.Revision != rev(2000) {
			t.Errorf("a tombstone has revision %q, want its version %q", deleted.Revision, rev(2000))
		}
		e.clock.set(3000)
		set(t, o, stored(test.at, deleted.Revision, 6))
		holdsItem(item(3000, rpm("6000")...))
	}
}

// TestOverridesInOneRead counts the calls of a Get of several levels.
func TestOverridesInOneRead(t *testing.T) {
	e, memory := newFaulty(t)
	o := e.operator(e.client, 0)
	set(t, o, stored("user-1", "", 5))
	set(t, o, stored("user", "", 0, 6))
	memory.ResetConsumed()
	says(t, o, stored("user-1", rev(0), 5), stored("user-2", ""), stored("user", rev(0), 0, 6))
	if got := memory.Consumed().Requests; got["BatchGetItem"] != 1 || len(got) != 1 {
		t.Errorf("calls: %v, want one BatchGetItem", got)
	}
}

// TestUnknownLimitsSurvive has an operator with another schema set an override before.
func TestUnknownLimitsSurvive(t *testing.T) {
	e := newEngine(t)
	newer := &store.Spec{Resource: "gpt-4", Limits: []string{"ipm", "rpm"}}
	l := bucket.Per(3, time.Hour)
	o := e.operator(e.client, 0)
	first, err := o.Set(t.Context(), newer, store.Stored{At: "user-1", Limits: []*bucket.Limit{&l, &l}})
	if err != nil {
		t.Fatal(err)
	}
	hourly := store.Stored{At: "user-1", Limits: []*bucket.Limit{&l, nil}, Revision: first}
	says(t, o, hourly)
	set(t, o, stored("user-1", first, 0, 8))
	ipm := map[string]string{}
	for name, v := range plain(e.get(t, item.OverrideKey("gpt-4", "user-1"))) {
		if strings.HasPrefix(name, "l_") && !strings.HasPrefix(name, "l_tpm_") {
			ipm[name] = v
		}
	}
	want := map[string]string{
		"l_ipm_cp": "N 3000",
		"l_ipm_bx": "N 3000",
		"l_ipm_ra": "N 3000",
		"l_ipm_rp": "N 3600000",
	}
	if diff := cmp.Diff(want, ipm); diff != "" {
		t.Errorf("limits beside tpm, - wanted, + stored:\n%s", diff)
	}
	// Nothing of ours is overridden once tpm is gone: it is neither listed nor in the way.
	if _, err := o.Set(t.Context(), newer, store.Stored{At: "user-1", Limits: []*bucket.Limit{&l, nil},
		Revision: rev(1)}); err != nil {
		t.Fatal(err)
	}
	e.clock.set(1000)
	tpm := &store.Spec{Resource: "gpt-4", Limits: []string{"rpm"}}
	for s, err := range o.List(t.Context(), tpm) {
		t.Errorf("listed %v, %v", s, err)
	}
	if _, err := o.Set(t.Context(), tpm, store.Stored{At: "user-1", Limits: []*bucket.Limit{&l}}); err != nil {
		t.Error(err)
	}
}

// TestTwoOperators: who comes second is told so, and nothing is lost.
func TestTwoOperators(t *testing.T) {
	e := newEngine(t)
	alpha, beta := e.operator(e.client, 0), e.operator(e.client, 0)
	first := set(t, alpha, stored("user-1", "", 5))
	won := set(t, beta, stored("user-1", first, 6))
	for name, late := range map[string]store.Stored{
		"of what was there before": stored("user-1", first, 7),
		"of nothing":               stored("user-1", "", 7),
		"that deletes":             stored("user-1", first),
		"that deletes nothing":     stored("user-1", ""),
		"of no revision at all":    stored("user-1", "yesterday's", 7),
		"of a revision below 1":    stored("user-1", "-1", 7),
	} {
		_, err := alpha.Set(t.Context(), rates(), late)
		if conflict, ok := errors.AsType[*store.ConflictError](err); !ok ||
			*conflict != (store.ConflictError{Resource: "gpt-4", At: "user-1"}) {
			t.Errorf("a write %s: %v, want a ConflictError", name, err)
		}
	}
	says(t, beta, stored("user-1", won, 6))
	_, err := alpha.Set(t.Context(), rates(), stored("user-2", first, 7))
	wantErr(t, err, "conflict gpt-4 user-2")
	says(t, beta, stored("user-2", ""))
}

// TestManyOperators each raise a limit by one, at the same time, until that got through. Those who read the
// same write the same, version included, and yet only one of them is right to think that it was his.
func TestManyOperators(t *testing.T) {
	const operators, raises = 4, 5
	e := newEngine(t)
	set(t, e.operator(e.client, 0), stored("user-1", "", 1))
	together(t, operators, func(i int) error {
		o := e.operator(e.client, int64(i-operators/2)*1000)
		for done := 0; done < raises; {
			now, err := o.Get(t.Context(), rates(), "user-1")
			if err != nil {
				return err
			}
			raised := *now[0].Limits[0]
			raised.Capacity, raised.Burst = raised.Capacity+bucket.Milli, raised.Burst+bucket.Milli
			now[0].Limits[0] = &raised
			switch _, err := o.Set(t.Context(), rates(), now[0]); {
			case err == nil:
				done++
			case !isA[*store.ConflictError](err):
				return err
			}
		}
		return nil
	})
	item := e.get(t, item.OverrideKey("gpt-4", "user-1"))
	if got := number(item["l_rpm_cp"]); got != (1+operators*raises)*bucket.Milli {
		t.Errorf("a capacity of %d, want %d: a change was lost", got, (1+operators*raises)*bucket.Milli)
	}
}

// TestTombstones: nothing is overridden where one is, so that "" is a right revision there, and its version
// lives on.
func TestTombstones(t *testing.T) {
	e := newEngine(t)
	ahead, o := e.operator(e.client, 5000), e.operator(e.client, 0)
	deleted := set(t, ahead, stored("user-1", set(t, ahead, stored("user-1", "", 5))))
	if deleted != rev(5001) {
		t.Fatalf("the tombstone has revision %s, want %s", deleted, rev(5001))
	}
	again := set(t, o, stored("user-1", "", 6))
	if again != rev(5002) {
		t.Errorf("what stands in its place has revision %s, want %s", again, rev(5002))
	}
	says(t, o, stored("user-1", again, 6))
	deleted = set(t, o, stored("user-1", again))
	if twice := set(t, o, stored("user-1", "")); twice <= deleted {
		t.Errorf("a tombstone in place of %s has revision %s", deleted, twice)
	}
	set(t, o, stored("user-2", "")) // of what never was
	says(t, o, stored("user-2", rev(0)))
}

// TestVersionsRise whatever operators' clocks say.
func TestVersionsRise(t *testing.T) {
	e := newEngine(t)
	var current store.Revision
	last := int64(0)
	for i, ahead := range []int64{0, 5000, -5000, 0, -3 * t0, 4999, 5010, -1} {
		s := stored("user-1", current, int64(i+1))
		if i%3 == 2 {
			s = stored("user-1", current)
		}
		current = set(t, e.operator(e.client, ahead), s)
		if ver := number(e.get(t, item.OverrideKey("gpt-4", "user-1"))["ver"]); ver <= last ||
			current != override.FormatRevision(ver) {
			t.Errorf("version %d and revision %s after %d", ver, current, last)
		} else {
			last = ver
		}
	}
	if last != t0+5011 {
		t.Errorf("the last version is %d, want %d", last, t0+5011)
	}
	_, err := e.operator(e.client, override.MaxVersion-t0+1).
		Set(t.Context(), rates(), stored("user-1", current, 1))
	wantErr(t, err, "setup: the version of the override of gpt-4 at user-1 would be 16666666666666, "+
		"beyond the year 2498 | set this host's clock by NTP")
}

// TestSetOnce lets each mishap befall each kind of write: it is stored once, under the version that its
// caller is told.
func TestSetOnce(t *testing.T) {
	throttle := reject("ProvisionedThroughputExceededException", "slow down")
	for name, test := range map[string]struct {
		mishaps []mishap
		writes  int
	}{
		"lost reply":    {[]mishap{loseReply}, 2},
		"cut reply":     {[]mishap{cutReply}, 2},
		"lost request":  {[]mishap{loseRequest}, 2},
		"500":           {[]mishap{fail500}, 2},
		"502":           {[]mishap{proxy502}, 2},
		"duplicate":     {[]mishap{duplicate}, 1},
		"throttled":     {[]mishap{throttle, throttle, throttle}, 4},
		"all of it":     {[]mishap{throttle, loseRequest, loseReply, fail500, throttle}, 6},
		"a late copy":   {[]mishap{delay}, 2},
		"until the end": {slices.Repeat([]mishap{loseReply}, wire.OperatorAttempts-1), wire.OperatorAttempts},
	} {
		for kind, write := range map[string]struct {
			before []store.Stored
			is     store.Stored
			ver    int64
			writes int // besides
		}{
			"the first":              {nil, stored("user-1", "", 5), 1000, 0},
			"a change":               {[]store.Stored{stored("user-1", "", 4)}, stored("user-1", rev(0), 5), 1000, 0},
			"a deletion":             {[]store.Stored{stored("user-1", "", 4)}, stored("user-1", rev(0)), 1000, 0},
			"in a tombstone's place": {[]store.Stored{stored("user-1", "")}, stored("user-1", "", 5), 1000, 1},
		} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				e := newEngine(t)
				for _, s := range write.before {
					set(t, e.operator(e.client, 0), s)
				}
				client, w := e.withNetwork(test.mishaps...)
				o := e.operator(client, write.ver)
				got := set(t, o, write.is)
				if got != rev(write.ver) {
					t.Errorf("revision %s, want %s", got, rev(write.ver))
				}
				if name == "a late copy" {
					if codes := w.arrive(t); !slices.Equal(codes, []int{http.StatusOK}) { // by its token, as the first
						t.Errorf("the late copy was answered %v, want 200", codes)
					}
				}
				want := write.is
				want.Revision = got
				says(t, o, want)
				if len(w.mishaps) > 0 || w.sent > test.writes+write.writes {
					t.Errorf(
						"%d writes with %d mishaps left, want at most %d and none",
						w.sent,
						len(w.mishaps),
						test.writes+write.writes,
					)
				}
			})
		}
	}
}

// TestOthersBetweenSets has another operator write between a write without reply and its repetition: theirs
// stands. The token of a write that was applied says so, whatever came after it.
func TestOthersBetweenSets(t *testing.T) {
	for name, test := range map[string]struct {
		before store.Stored // if it says something
		is     store.Stored
		lost   bool // the request, not the reply
		theirs func(e *engine, o *operator.Overrides)
		want   store.Stored
		err    bool
	}{
		"a change of what was applied": {
			is:     stored("user-1", "", 5),
			theirs: func(_ *engine, o *operator.Overrides) { set(t, o, stored("user-1", rev(1000), 6)) },
			want:   stored("user-1", rev(1001), 6),
		},
		"a change of what was lost": {
			before: stored("user-1", "", 4), is: stored("user-1", rev(0), 5), lost: true, err: true,
			theirs: func(_ *engine, o *operator.Overrides) { set(t, o, stored("user-1", rev(0), 6)) },
			want:   stored("user-1", rev(1), 6),
		},
		"a deletion of what was applied": {
			is:     stored("user-1", "", 5),
			theirs: func(_ *engine, o *operator.Overrides) { set(t, o, stored("user-1", rev(1000))) },
			want:   stored("user-1", rev(1001)),
		},
		"a tombstone from before what was lost": {
			is: stored("user-1", "", 5), lost: true,
			theirs: func(_ *engine, o *operator.Overrides) { set(t, o, stored("user-1", "")) },
			want:   stored("user-1", rev(1000), 5),
		},
		"somebody who deletes the item itself": {
			before: stored("user-1", "", 4), is: stored("user-1", rev(0), 5), lost: true, err: true,
			theirs: func(e *engine, _ *operator.Overrides) {
				_, err := e.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &e.table,
					Key: item.OverrideKey("gpt-4", "user-1")})
				if err != nil {
					t.Error(err)
				}
			},
			want: stored("user-1", ""),
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			other := e.operator(e.client, 0)
			if test.before.At != "" {
				set(t, other, test.before)
			}
			client, w := e.withNetwork()
			theirs := func() { test.theirs(e, other) }
			if test.lost {
				w.expect(func(w *network, apply func() (*http.Response, error)) (*http.Response, error) {
					theirs()
					return loseRequest(w, apply)
				})
			} else {
				w.expect(then(theirs, loseReply))
			}
			_, err := e.operator(client, 1000).Set(t.Context(), rates(), test.is)
			if isA[*store.ConflictError](err) != test.err || !test.err && err != nil {
				t.Errorf("got %v, a conflict is %v", err, test.err)
			}
			says(t, other, test.want)
		})
	}
}

// TestOverridesUnavailable holds what an operator is told when DynamoDB does not answer.
func TestOverridesUnavailable(t *testing.T) {
	e, memory := newFaulty(t)
	pause := e.clock.After
	retrier := e.retrier()
	retrier.After = func(d time.Duration) <-chan time.Time { return pause(d) }
	o := e.operatorWith(e.client, retrier, 0)
	set(t, o, stored("user-1", "", 5))
	calls := map[string]func(context.Context) error{
		"get": func(ctx context.Context) error { return second(o.Get(ctx, rates(), "user-1")) },
		"set": func(ctx context.Context) error {
			return second(o.Set(ctx, rates(), stored("user-1", rev(0), 6)))
		},
		"delete": func(ctx context.Context) error { return second(o.Set(ctx, rates(), stored("user-1", rev(0)))) },
		"list":   func(ctx context.Context) error { return second(list(ctx, o)) },
	}
	fails := func(ctx context.Context, name, do, want string) {
		t.Helper()
		err := calls[do](ctx)
		if failure, ok := errors.AsType[*store.UnavailableError](err); !ok ||
			failure.Throttled != (name == "throttled") {
			t.Errorf("%s, %s: got %#v, want an UnavailableError", name, do, err)
		}
		got := strings.ReplaceAll(withoutRequest(errtext.Of(err)), e.table, "TABLE")
		if !strings.HasPrefix(got, want) {
			t.Errorf("%s, %s: got\n%s\nwant\n%s", name, do, got, want)
		}
	}
	for do := range calls {
		memory.Faults().Down(true)
		fails(t.Context(), "down", do, "unavailable table TABLE 10: ")
		memory.Faults().Clear()
		memory.Faults().Throttle(1)
		fails(t.Context(), "throttled", do, "unavailable table TABLE 10 throttled: ")
		memory.Faults().Clear()
		memory.Faults().InternalErrors(1)
		fails(t.Context(), "500", do, "unavailable table TABLE 10: ")

		// A deadline that falls between two tries, and a caller who gives up there.
		soon, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
		never := make(chan time.Time)
		pause = func(time.Duration) <-chan time.Time { cancel(); return never }
		err := calls[do](soon)
		if !errors.Is(err, context.Canceled) || isA[*store.UnavailableError](err) {
			t.Errorf("cancelled, %s: got %v", do, err)
		}
		wantErr(t, err, "context canceled table "+e.table)
		over := &overAfter{Context: t.Context(), done: make(chan struct{})}
		pause = func(time.Duration) <-chan time.Time { over.end(); return never }
		fails(over, "deadline", do, "unavailable table TABLE 1: context deadline exceeded, after ")
		pause = e.clock.After
		memory.Faults().Clear()
	}
	says(t, o, stored("user-1", rev(0), 5))
}

// overAfter is a context whose deadline passes when a test says so.
type overAfter struct {
	context.Context
	once sync.Once
	done chan struct{}
}

func (c *overAfter) end()                  { c.once.Do(func() { close(c.done) }) }
func (c *overAfter) Done() <-chan struct{} { return c.done }
func (c *overAfter) Err() error {
	select {
	case <-c.done:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

// TestOverridesSetupErrors: a call that fails with a *store.SetupError is not tried twice.
func TestOverridesSetupErrors(t *testing.T) {
	e, memory := newFaulty(t)
	e.table = "nobody-made-this"
	o := e.operator(e.client, 0)
	for name, err := range map[string]error{
		"get":  second(o.Get(t.Context(), rates(), "user-1")),
		"set":  second(o.Set(t.Context(), rates(), stored("user-1", "", 6))),
		"list": second(list(t.Context(), o)),
	} {
		t.Log(name)
		wantSetup(t, err, "table nobody-made-this", "ResourceNotFoundException")
	}
	// Set reads what it is to change.
	if got := memory.Consumed().Requests; got["BatchGetItem"] != 2 || got["TransactWriteItems"] != 0 ||
		got["Query"] != 1 {
		t.Errorf("calls: %v, want two reads and a query", got)
	}
}

// TestUnprocessedKeys has a batch come back in part, again and again.
func TestUnprocessedKeys(t *testing.T) {
	e, memory := newFaulty(t)
	o := e.operator(e.client, 0)
	want := make([]store.Stored, 2*wire.MaxBatchGet+7)
	for i := range want {
		at := "user-" + strconv.Itoa(i)
		want[i] = stored(at, set(t, o, stored(at, "", int64(i+1))), int64(i+1))
	}
	memory.Faults().Unprocessed(0.5)
	says(t, o, want...)
	memory.Faults().Unprocessed(1)
	_, err := o.Get(t.Context(), rates(), "user-1", "user")
	wantErr(t, err, "unavailable table "+e.table+" 10 throttled: "+
		"ProvisionedThroughputExceededException: no key of the batch was read")
}

// pages is an API whose queries return so many items a page.
type pages struct {
	wire.API
	most    int32
	queries int
}

func (p *pages) Query(
	ctx context.Context,
	in *dynamodb.QueryInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.QueryOutput, error) {
	p.queries++
	limited := *in
	limited.Limit = &p.most
	return p.API.Query(ctx, &limited, opts...)
}

// TestListPages lists overrides of three kinds of places over several pages, sorted, and stops when its
// caller does.
func TestListPages(t *testing.T) {
	e := newEngine(t)
	o := e.operator(e.client, 0)
	var want []store.Stored
	for i := range 2 * wire.MaxBatchGet {
		at := fmt.Sprintf("user-%03d", i)
		s := stored(at, set(t, o, stored(at, "", int64(i+1))), int64(i+1))
		if i%10 == 3 {
			set(t, o, stored(at, s.Revision)) // a tombstone is not listed
			continue
		}
		want = append(want, s)
	}
	kind := stored("user", set(t, o, stored("user", "", 0, 9)), 0, 9)
	want = append([]store.Stored{kind}, want...)
	other := *rates()
	other.Resource = "gpt-4o"
	if _, err := o.Set(t.Context(), &other, stored("user-1", "", 5)); err != nil {
		t.Fatal(err)
	}
	p := &pages{API: e.client, most: 150}
	got, err := list(t.Context(), e.operator(p, 0))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("listed, - wanted, + got:\n%s", diff)
	}
	if p.queries < 2 {
		t.Errorf("%d pages, want several", p.queries)
	}
	p.queries, p.most = 0, 10
	for s, err := range e.operator(p, 0).List(t.Context(), rates()) {
		if err != nil || s.At != "user" {
			t.Errorf("first comes %v, %v", s, err)
		}
		break
	}
	if p.queries != 1 {
		t.Errorf("%d pages read for one override", p.queries)
	}
}

// TestListBehind has the index show a past in which there were overrides that are gone, and none that is
// there.
func TestListBehind(t *testing.T) {
	e, memory := newFaulty(t)
	o := e.operator(e.client, 0)
	memory.Faults().IndexLag(30 * time.Second) // from the start: an engine keeps no past that nobody asks for
	first := set(t, o, stored("user-1", "", 5))
	set(t, o, stored("user-2", "", 6))
	set(t, o, stored("user-3", "", 7))
	e.clock.set(60_000)
	set(t, o, stored("user-1", first))
	_, err := e.client.DeleteItem(
		t.Context(),
		&dynamodb.DeleteItemInput{TableName: &e.table, Key: item.OverrideKey("gpt-4", "user-2")},
	)
	if err != nil {
		t.Fatal(err)
	}
	changed := set(t, o, stored("user-3", rev(0), 8))
	set(t, o, stored("user-4", "", 9))
	got, err := list(t.Context(), o)
	if diff := cmp.Diff([]store.Stored{stored("user-3", changed, 8)}, got); diff != "" || err != nil {
		t.Errorf("listed, - wanted, + got:\n%s%v", diff, err)
	}
}

// TestMalformedOverrides meets config items that nobody of us wrote.
func TestMalformedOverrides(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(codec.Item)
		err   string
	}{
		"no version":     {func(item codec.Item) { delete(item, "ver") }, "attribute ver missing"},
		"a version of 0": {func(item codec.Item) { item["ver"] = codec.N(0) }, "attribute ver 0"},
		"a version in ns": {func(item codec.Item) {
			item["ver"] = codec.N(t0 * 1_000_000)
		}, "attribute ver 1800000000000000000"},
		"half a limit": {func(item codec.Item) { delete(item, "l_rpm_bx") }, "attribute l_rpm_bx missing"},
		"a period of 0": {func(item codec.Item) {
			item["l_rpm_rp"] = codec.N(0)
		}, "limit rpm: " + bucket.Limit{Capacity: 5000, Burst: 5000, Refill: 5000}.Check(0)},
		"a number as text": {func(item codec.Item) {
			item["l_rpm_ra"] = codec.S("5")
		}, "attribute l_rpm_ra S"},
		"with a fraction": {func(item codec.Item) {
			item["l_rpm_ra"] = &types.AttributeValueMemberN{Value: "0.5"}
		}, `attribute l_rpm_ra "0.5"`},
		"burst too low": {func(item codec.Item) {
			item["l_rpm_bx"] = codec.N(4000)
		}, "limit rpm: " + bucket.Limit{Capacity: 5000, Burst: 4000, Refill: 5000, Period: 60_000}.Check(0)},
		"one attribute only": {func(item codec.Item) {
			item["l_tpm_cp"] = codec.N(4000)
		}, "attribute l_tpm_bx missing"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			o := e.operator(e.client, 0)
			set(t, o, stored("user-1", "", 5))
			raw := e.get(t, item.OverrideKey("gpt-4", "user-1"))
			test.spoil(raw)
			e.put(t, raw)
			want := "setup: the override of gpt-4 at user-1 is malformed | " + test.err + " | " +
				"fix the item ENTITY#user-1 / #CONFIG#gpt-4 and raise its ver"
			for call, err := range map[string]error{
				"get":  second(o.Get(t.Context(), rates(), "user", "user-1")),
				"list": second(list(t.Context(), o)),
				"set":  second(o.Set(t.Context(), rates(), stored("user-1", "", 6))),
			} {
				if got := errtext.Of(err); got != want {
					t.Errorf("%s: got\n%s\nwant\n%s", call, got, want)
				}
			}
			if diff := cmp.Diff(plain(raw), plain(e.get(t, item.OverrideKey("gpt-4", "user-1")))); diff != "" {
				t.Errorf("it was changed:\n%s", diff)
			}
		})
	}
}
