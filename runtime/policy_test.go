package runtime_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// outages is a fake that remembers buckets as a store does, while its hook keeps it from answering.
type outages struct {
	*fake

	limits []bucket.Limit // in force for all buckets; nil: nobody has said so
}

func (o *outages) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	_, err := o.fake.Open(env, defs...)
	return o, err
}

func (o *outages) Lookup(call *store.Call) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range call.Parts {
		for j := range call.Parts[i].Buckets {
			b := &call.Parts[i].Buckets[j]
			b.After, b.Limits = o.buckets[place(call.Parts[i].Def.Spec(), b)], o.limits
		}
	}
}

func (o *outages) Acquire(ctx context.Context, call *store.Call) error {
	o.Lookup(call)
	return o.fake.Acquire(ctx, call)
}

// fail has acquires fail with err from now on; nil ends it.
func (o *outages) fail(err error) {
	o.hook(func(_ context.Context, op string, _ *store.Call) error {
		if op == "acquire" {
			return err
		}
		return nil
	})
}

// openOn returns a Limiter on store, and its resource, for which limits.yaml says onUnavailable.
func openOn(
	t testing.TB, store runtime.Store, onUnavailable runtime.Policy, opts ...runtime.Option,
) (*runtime.Limiter, *resource) {
	t.Helper()
	def := gpt4()
	def.spec.OnUnavailable = onUnavailable
	b := runtime.NewBuilder(store, append([]runtime.Option{runtime.WithLogger(slog.New(slog.DiscardHandler))},
		opts...)...)
	r := runtime.Bind[entity](b, def, toVector, fromVector)
	lim, err := b.Limiter()
	if err != nil {
		t.Fatal(err)
	}
	return lim, r
}

// down is what a store returns that is down.
func down() *runtime.UnavailableError {
	return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Err: errors.New("connection refused")}
}

// TestPolicies holds every class of error against every policy.
func TestPolicies(t *testing.T) {
	const (
		acquired  = "acquired"
		degraded  = "degraded" // by Allow: nothing was taken
		local     = "degraded and charged here"
		failed    = "failed"
		abandoned = "failed with ctx's error"
	)
	throttled := down()
	throttled.Throttled = true
	notSent := &runtime.UnavailableError{Err: fmt.Errorf("%w: %w", store.ErrNotSent, context.DeadlineExceeded)}
	policies := []runtime.Policy{0, runtime.Allow, runtime.Deny, runtime.Local}
	for _, test := range []struct {
		name string
		err  error
		ends func(context.Context, context.CancelFunc) // while the store is at work
		want [4]string                                 // by none, Allow, Deny, Local
	}{
		{"none", nil, nil, [4]string{acquired, acquired, acquired, acquired}},
		{"down", down(), nil, [4]string{degraded, degraded, failed, local}},
		{"down, wrapped", fmt.Errorf("store: %w", down()), nil, [4]string{degraded, degraded, failed, local}},
		{"throttled", throttled, nil, [4]string{local, local, failed, local}},
		{"not sent", notSent, nil, [4]string{local, local, failed, local}},
		{"denied", &runtime.DeniedError{Resource: "gpt-4"}, nil, [4]string{failed, failed, failed, failed}},
		{"above the burst", &runtime.CostTooLargeError{}, nil, [4]string{failed, failed, failed, failed}},
		{"invalid", &runtime.InvalidError{}, nil, [4]string{failed, failed, failed, failed}},
		{"contended", &runtime.ContendedError{}, nil, [4]string{failed, failed, failed, failed}},
		{"setup", &runtime.SetupError{What: "no table"}, nil, [4]string{failed, failed, failed, failed}},
		{"setup, which is why it is down", &runtime.SetupError{What: "no credentials", Err: down()}, nil,
			[4]string{failed, failed, failed, failed}},
		{"unknown", errors.New("strange"), nil, [4]string{failed, failed, failed, failed}},
		{"caller has gone", down(), func(_ context.Context, cancel context.CancelFunc) {
			cancel()
		}, [4]string{abandoned, abandoned, abandoned, abandoned}},
		{"caller's time is up", down(), func(ctx context.Context, _ context.CancelFunc) {
			<-ctx.Done()
		}, [4]string{abandoned, abandoned, abandoned, abandoned}},
		{"caller has gone, throttled", throttled, func(_ context.Context, cancel context.CancelFunc) { cancel() },
			[4]string{abandoned, abandoned, abandoned, abandoned}},
	} {
		for i, policy := range policies {
			t.Run(fmt.Sprintf("%s, %v", test.name, policy), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var events []report
					backend := &outages{fake: &fake{}}
					observer := watch(&events)
					observer.Degraded = func(_ context.Context, e runtime.Event) {
						events = append(events, report{"degraded", e, errtext.Of(e.Err)})
					}
					_, r := openOn(t, backend, policy, runtime.WithObserver(observer))
					ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
					defer cancel()
					backend.hook(func(ctx context.Context, op string, _ *store.Call) error {
						if op != "acquire" {
							return nil
						}
						if test.ends != nil {
							test.ends(ctx, cancel)
						}
						return test.err
					})
					lease, err := r.Acquire(ctx, user{"1"}, cost{TPM: 6000})
					got, event := "", "failed"
					switch {
					case err == nil && !lease.Degraded():
						got, event = acquired, "acquired"
					case err == nil:
						got, event = degraded, "degraded"
						_, err := r.Acquire(t.Context(), user{"1"}, cost{TPM: 1})
						if denied, ok := errors.AsType[*runtime.DeniedError](err); ok {
							got = local
							equal(t, "retry after", denied.RetryAfter, 10*time.Millisecond)
							equal(t, "denied locally", events[1].Event.Local, true)
						}
					case ctx.Err() != nil && errors.Is(err, ctx.Err()):
						got = abandoned
						check(t, err, ctx.Err().Error()+" gpt-4 user-1")
					case errors.Is(err, test.err):
						got = failed
						if _, ok := errors.AsType[*runtime.DeniedError](err); ok {
							event = "denied"
						}
					}
					equal(t, "outcome", got, test.want[i])
					equal(t, "report", events[0].Which, event)
					equal(t, "decided here", events[0].Event.Local, event == "degraded")
					if event == "degraded" {
						equal(t, "because", events[0].Err, errtext.Of(test.err))
					}
					if (lease != nil) != (err == nil) {
						t.Errorf("lease %v beside error %v", lease, err)
					}
				})
			})
		}
	}
}

// TestTimeOutMeetsThePolicy: the budget's end does, and that of a MaxWait for the first answer; the caller's
// deadline does not.
func TestTimeOutMeetsThePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		backend := &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			<-ctx.Done()
			return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: ctx.Err()}
		}}
		_, r := openOn(t, backend, runtime.Allow)
		start := time.Now()
		lease, err := r.Acquire(t.Context(), user{"1"}, cost{})
		check(t, err, "")
		equal(t, "degraded", lease.Degraded(), true)
		equal(t, "took", time.Since(start), store.DefaultBudget)

		_, err = r.Acquire(within(t, 999*time.Millisecond), user{"1"}, cost{})
		check(t, err, "context deadline exceeded gpt-4 user-1")
		_, err = r.Wait(within(t, 999*time.Millisecond), user{"1"}, cost{}, runtime.MaxWait(999*time.Millisecond))
		check(t, err, "context deadline exceeded gpt-4 user-1")
		start = time.Now()
		for _, opt := range []runtime.CallOption{nil, runtime.MaxWait(999 * time.Millisecond)} {
			lease, err = r.Wait(t.Context(), user{"1"}, cost{}, opt)
			check(t, err, "")
			equal(t, "degraded after a wait", lease.Degraded(), true)
		}
		equal(t, "took", time.Since(start), 1999*time.Millisecond)
	})
}

// TestMaxWaitInTheLine: a MaxWait may end while the first in the queue still waits for the store's first
// answer. The error says so, and differs from a time-out of the caller's own.
func TestMaxWaitInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := queue(t, &fake{before: func(ctx context.Context, _ string, _ *store.Call) error {
			<-ctx.Done()
			return &runtime.UnavailableError{Resource: "gpt-4", Attempts: 1, Err: ctx.Err()}
		}})
		w.join(t.Context(), "a", 1, runtime.OnUnavailable(runtime.Deny))
		elapse(time.Millisecond)
		w.join(t.Context(), "b", 1, runtime.MaxWait(500*time.Millisecond))
		w.next("b", 501*time.Millisecond, "MaxWait is over gpt-4 user-1 500ms")
		if !errors.Is(w.last, runtime.ErrMaxWait) || !errors.Is(w.last, context.DeadlineExceeded) {
			t.Errorf("%#v", w.last)
		}
		w.next("a", time.Second, "unavailable gpt-4 1: context deadline exceeded")
	})
}

// TestPolicyPrecedence: a call's option beats With's, With's beats WithCallDefaults', that beats
// limits.yaml's.
func TestPolicyPrecedence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		allow, deny := runtime.OnUnavailable(runtime.Allow), runtime.OnUnavailable(runtime.Deny)
		for _, test := range []struct {
			name           string
			schema         runtime.Policy
			all, with, one runtime.CallOption
			admitted       bool
		}{
			{"nobody says", 0, nil, nil, nil, true},
			{"schema", runtime.Deny, nil, nil, nil, false},
			{"WithCallDefaults", runtime.Deny, allow, nil, nil, true},
			{"With", runtime.Deny, deny, allow, nil, true},
			{"call", runtime.Deny, deny, deny, allow, true},
			{"call, the other way", runtime.Allow, allow, allow, deny, false},
		} {
			store := &outages{fake: &fake{}}
			_, r := openOn(t, store, test.schema, runtime.WithCallDefaults(test.all))
			store.fail(down())
			_, err := r.With(test.with).Acquire(t.Context(), user{"1"}, cost{}, test.one)
			equal(t, test.name, err == nil, test.admitted)
		}
	})
}

func TestPolicyNames(t *testing.T) {
	equal(t, "names", fmt.Sprint(runtime.Allow, runtime.Deny, runtime.Local, runtime.Policy(9)),
		"allow deny local Policy(9)")
}

// TestAllowedLease took nothing, shows the last image, and closes without the store.
func TestAllowedLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &outages{fake: &fake{}}
		_, r := openOn(t, store, runtime.Allow)
		store.put(2*time.Second, 10, 100)
		store.fail(down())
		for _, test := range []struct {
			name string
			who  entity
			left cost
		}{
			{"last image", user{"1"}, cost{12, 300}},
			{"no image", user{"2"}, cost{60, 6000}},
		} {
			calls := store.count()
			lease := acquire(t, r, test.who, cost{TPM: 50_000})
			equal(t, test.name+": cost", lease.Cost(), cost{1, 50_000})
			equal(t, test.name+": left", lease.Remaining(), test.left)
			check(t, lease.Settle(t.Context(), cost{TPM: -1}), `invalid gpt-4 cost tpm "-1"`)
			check(t, lease.Settle(t.Context(), cost{TPM: 70_000}), "")
			check(t, lease.Settle(t.Context(), cost{}), runtime.ErrSettled.Error())
			acquire(t, r, test.who, cost{TPM: 5}).Release(t.Context())
			equal(t, test.name+": calls", store.count()-calls, 2)
			equal(t, test.name+": left in the end", lease.Remaining(), test.left)
		}
	})
}

func TestOnlyStandInsDegrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, r := open(t, &fake{})
		for name, lease := range map[string]*runtime.Lease[cost]{"nil": nil, "zero": {},
			"the store's": acquire(t, r, user{"1"}, cost{})} {
			equal(t, name, lease.Degraded(), false)
		}
	})
}

// TestDegradedIsReported: how such a lease ends, too, with Local set.
func TestDegradedIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, policy := range []runtime.Policy{runtime.Allow, runtime.Local} {
			var events []report
			store := &outages{fake: &fake{}}
			_, r := openOn(t, store, policy, runtime.WithObserver(watch(&events)))
			acquire(t, r, user{"1"}, cost{}).Release(t.Context())
			store.fail(down())
			check(t, acquire(t, r, user{"1"}, cost{}).Settle(t.Context(), cost{}), "")
			acquire(t, r, user{"1"}, cost{}).Release(t.Context())
			event := runtime.Event{Resource: "gpt-4", Kind: "user", Entity: "user-1"}
			here := event
			here.Local = true
			want := []report{{"acquired", event, ""}, {"released", event, ""}, {"settled", here, ""},
				{"released", here, ""}}
			if diff := cmp.Diff(want, events); diff != "" {
				t.Errorf("%v (-want +got):\n%s", policy, diff)
			}
		}
	})
}

// logged returns a logger and what it has logged since the last call, without time and with errors as errtext
// describes them.
func logged() (runtime.Option, func() []string) {
	var out bytes.Buffer
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		if err, ok := a.Value.Any().(error); ok {
			a.Value = slog.StringValue(errtext.Of(err))
		}
		return a
	}
	option := runtime.WithLogger(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: plain})))
	return option, func() (lines []string) {
		for line := range strings.Lines(out.String()) {
			lines = append(lines, strings.TrimSuffix(line, "\n"))
		}
		out.Reset()
		return lines
	}
}

// TestWarnings are a second apart, and count what was admitted without a record.
func TestWarnings(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		option, lines := logged()
		clock := &shifted{}
		store := &outages{fake: &fake{}}
		_, r := openOn(t, store, runtime.Allow, option, runtime.WithClock(clock))
		want := func(policy string, admitted int, err error) string {
			return fmt.Sprintf(
				`level=WARN msg="sluice: calls are admitted that the store has no record of" `+
					`resource=gpt-4 entity=user-1 policy=%s admitted=%d error=%q`, policy, admitted, errtext.Of(err))
		}
		throttled := &runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Throttled: true,
			Err: errors.New("reset")}
		plain := &runtime.UnavailableError{Resource: "gpt-4", Attempts: 2, Err: errors.New("reset")}
		for _, step := range []struct {
			name  string
			after time.Duration
			err   error
			calls int
			opts  []runtime.CallOption
			want  []string
		}{
			{"answers", 0, nil, 3, nil, nil},
			{"first", 0, plain, 3, nil, []string{want("allow", 1, plain)}},
			{"too soon", 999 * time.Millisecond, plain, 1, nil, nil},
			{"answers again", 0, nil, 1, nil, nil},
			{"next", time.Millisecond, plain, 2, nil, []string{want("allow", 4, plain)}},
			{"refused is not admitted", 0, plain, 1, []runtime.CallOption{runtime.OnUnavailable(runtime.Deny)}, nil},
			{"answers in between", 0, nil, 1, nil, nil},
			{"local counts too", time.Hour, throttled, 2, nil, []string{want("local", 2, throttled)}},
			{"a clock that is set back", -time.Hour, plain, 2, nil, []string{want("allow", 2, plain)}},
		} {
			clock.set(step.after)
			elapse(3 * time.Second) // else Allow decides as Local
			store.fail(step.err)
			for range step.calls {
				_, _ = r.Acquire(t.Context(), user{"1"}, cost{}, step.opts...)
			}
			if diff := cmp.Diff(step.want, lines()); diff != "" {
				t.Errorf("%s (-want +got):\n%s", step.name, diff)
			}
		}
	})
}

// TestLogsShowNoControls: logged entities are quoted unless they are plain.
func TestLogsShowNoControls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		option, lines := logged()
		down := &outages{fake: &fake{}}
		_, r := openOn(t, down, runtime.Allow, option)
		odd := user{"1\u00a0"}
		lease := acquire(t, r, odd, cost{TPM: 100})
		down.fail(&runtime.UnavailableError{Resource: "gpt-4", Err: errors.New("reset")})
		_, _ = r.Acquire(t.Context(), odd, cost{})
		down.hook(func(context.Context, string, *store.Call) error { return errors.New("reset") })
		lease.Release(t.Context())
		got := lines()
		for _, line := range got {
			if !strings.Contains(line, `entity="\"user-1\\u00a0\""`) {
				t.Error(line)
			}
		}
		if len(got) < 2 {
			t.Errorf("logged %q, want a warning of the policy and one of the release", got)
		}
	})
}

// shifted is a clock that stands where it is set.
type shifted struct{ by time.Duration }

func (s *shifted) set(d time.Duration)                  { s.by += d }
func (s *shifted) Now() time.Time                       { return time.Unix(1_800_000_000, 0).Add(s.by) }
func (*shifted) After(d time.Duration) <-chan time.Time { return time.After(d) }
