package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// happening is one step of a history of waiters. Users 1 to 3 are of project-3.
type happening struct {
	what   string
	user   int
	tokens int64
	after  time.Duration // before the next step
	pick   int           // which of the waiters or leases
}

// history draws steps. Other processes take part if others is set.
func history(t *rapid.T, others bool) []happening {
	kinds := []string{"joins", "joins", "joins with a deadline", "leaves", "acquires", "settles", "releases"}
	if others {
		kinds = append(kinds, "another process takes", "another process gives back")
	}
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) happening {
		return happening{
			what: rapid.SampledFrom(kinds).Draw(t, "what"),
			user: rapid.IntRange(1, 3).Draw(t, "user"), tokens: rapid.Int64Range(1, 6000).Draw(t, "tokens"),
			after: time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 10, 999, 5000, 60_000}).Draw(t, "ms")) *
				time.Millisecond,
			pick: rapid.IntRange(0, 1000).Draw(t, "pick"),
		}
	}), 5, 60).Draw(t, "history")
}

// inWait is a waiter of a history.
type inWait struct {
	user     string
	cost     int64
	deadline time.Time // zero for none
	cancel   context.CancelFunc
	left     bool
	ended    chan error
	could    time.Time // since when it could have been served; zero if it cannot
}

// waitWorld plays a history.
type waitWorld struct {
	backend *fake
	r       *resource
	queues  map[string][]*inWait // by user, in order
	leases  []*runtime.Lease[cost]
}

// play returns what was wrong in a history, "" if nothing was. A waiter who could be served is, once nothing
// more happens, or within notice if other processes take part.
func play(t *testing.T, backend *fake, steps []happening, notice time.Duration) (wrong string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		lim, r := openAs(t, backend, tree(together, ofUser, ofProject))
		w := &waitWorld{backend: backend, r: r, queues: map[string][]*inWait{}}
		w.backend.putOf("project-3", 0, 60, 0)
		for i, step := range steps {
			w.do(t, step)
			if wrong == "" {
				wrong = w.wrong(notice)
			}
			elapse(step.after)
			if wrong == "" {
				wrong = w.wrong(notice)
			}
			if wrong != "" {
				wrong = fmt.Sprintf("%s, after step %d of %+v", wrong, i, steps)
				break
			}
		}
		for _, queue := range w.queues {
			for _, waiter := range queue {
				waiter.cancel()
			}
		}
		synctest.Wait()
		if n := runtime.Waiting(lim); wrong == "" && n != 0 {
			wrong = fmt.Sprintf("%d queues are left", n)
		}
	})
	return wrong
}

func (w *waitWorld) do(t *testing.T, step happening) {
	t.Helper()
	user := strconv.Itoa(step.user)
	var open []*inWait
	for _, queue := range w.queues {
		open = append(open, queue...)
	}
	slices.SortFunc(open, func(a, b *inWait) int { return int(a.cost - b.cost) })
	switch step.what {
	case "joins":
		w.join(t, user, step.tokens, 0)
	case "joins with a deadline":
		w.join(t, user, step.tokens, time.Duration(1+step.pick)*100*time.Millisecond)
	case "leaves":
		if len(open) > 0 {
			open[step.pick%len(open)].left = true
			open[step.pick%len(open)].cancel()
		}
	case "acquires":
		if lease, err := w.r.Acquire(t.Context(), ofProject3(user), cost{TPM: step.tokens}); err == nil {
			w.leases = append(w.leases, lease)
		}
	case "settles", "releases":
		if len(w.leases) > 0 {
			i := step.pick % len(w.leases)
			if step.what == "settles" {
				_ = w.leases[i].Settle(t.Context(), cost{TPM: step.tokens})
			} else {
				w.leases[i].Release(t.Context())
			}
			w.leases = slices.Delete(w.leases, i, i+1)
		}
	case "another process takes":
		w.backend.change("project-3", -step.tokens)
	case "another process gives back":
		w.backend.change("project-3", step.tokens)
		w.backend.change("user-"+user, step.tokens)
	}
	synctest.Wait()
}

// change gives tokens to a bucket, or takes them, as another process does.
func (f *fake) change(entity string, tokens int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if img := f.buckets[entity]; img != nil {
		f.take(gpt4().spec, []*store.Bucket{{Entity: entity}}, img, []int64{0, -tokens * bucket.Milli}, nil)
	}
}

func (w *waitWorld) join(t *testing.T, user string, tokens int64, within time.Duration) {
	t.Helper()
	waiter := &inWait{user: user, cost: tokens, ended: make(chan error, 1)}
	var ctx context.Context
	if ctx, waiter.cancel = context.WithCancel(t.Context()); within > 0 {
		waiter.deadline = time.Now().Add(within)
		ctx, waiter.cancel = context.WithDeadline(t.Context(), waiter.deadline)
	}
	w.queues[user] = append(w.queues[user], waiter)
	go func() {
		_, err := w.r.Wait(patient(t, ctx), ofProject3(user), cost{TPM: tokens})
		waiter.ended <- err
	}()
}

// wrong removes the waiters that have ended, and returns what is wrong with them and with those who wait.
func (w *waitWorld) wrong(notice time.Duration) string {
	synctest.Wait()
	for user, queue := range w.queues {
		var still []*inWait
		for _, waiter := range queue {
			select {
			case err := <-waiter.ended:
				if problem := waiter.problem(err, still); problem != "" {
					return problem
				}
			default:
				still = append(still, waiter)
			}
		}
		w.queues[user] = still
	}
	for user, queue := range w.queues {
		if len(queue) == 0 {
			continue
		}
		first := queue[0]
		has := min(w.backend.level("user-"+user).TPM, w.backend.level("project-3").TPM)
		switch {
		case has < first.cost:
			first.could = time.Time{}
		case first.could.IsZero():
			first.could = time.Now()
		}
		if !first.could.IsZero() && time.Since(first.could) >= notice {
			return fmt.Sprintf("user %s waits for %d tokens, and there are %d since %v", user, first.cost, has,
				time.Since(first.could))
		}
	}
	return ""
}

// problem returns what is wrong with the end of a wait, before which others of its user came who still wait.
func (v *inWait) problem(err error, ahead []*inWait) string {
	switch {
	case err == nil && len(ahead) > 0:
		return fmt.Sprintf("user %s: served before %d who came first", v.user, len(ahead))
	case err == nil, v.left && errors.Is(err, context.Canceled):
		return ""
	case v.deadline.IsZero() || !errors.Is(err, context.DeadlineExceeded):
		return err.Error()
	}
	return ""
}

// strictly is a notice for histories of one process: no time has to pass.
const strictly = 0

// TestWaitHistories: nobody is overtaken by a later waiter for the same entity. Nobody sleeps while its
// tokens are there: not at all in one process, for at most 30 s among several.
func TestWaitHistories(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		others := rapid.Bool().Draw(rt, "others")
		notice := time.Duration(strictly)
		if others {
			notice = 30*time.Second + time.Millisecond
		}
		if wrong := play(t, &fake{}, history(rt, others), notice); wrong != "" {
			rt.Error(wrong)
		}
	})
}

// TestWaitHistoriesCatch is the control of TestWaitHistories.
func TestWaitHistoriesCatch(t *testing.T) {
	unread := func(_ context.Context, op string, _ *store.Call) error {
		if op == "peek" {
			return &runtime.ContendedError{}
		}
		return nil
	}
	givenBack := []happening{
		{what: "joins", user: 1, tokens: 6000},
		{what: "another process gives back", user: 1, tokens: 6000, after: 40 * time.Second},
	}
	for _, test := range []struct {
		name    string
		backend *fake
		notice  time.Duration
		caught  bool
	}{
		{"as it is", &fake{}, 30 * time.Second, false},
		{"noticed too late", &fake{}, strictly, true},
		{"nobody reads", &fake{before: unread}, 30 * time.Second, true},
	} {
		wrong := play(t, test.backend, givenBack, test.notice)
		caught := strings.HasPrefix(wrong, "user 1 waits for 6000 tokens, and there are 6000")
		if caught != test.caught {
			t.Errorf("%s: %q", test.name, wrong)
		}
	}
	ahead := []*inWait{{}}
	if got := (&inWait{user: "1"}).problem(nil, ahead); got != "user 1: served before 1 who came first" {
		t.Errorf("served before another: %q", got)
	}
}
