package underway

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
)

type (
	testRead  = Read[string, int]
	testReads = Reads[string, int]
)

// newReads returns Reads that may be joined for a second by the clock at now.
func newReads(now *int64) *testReads {
	return &testReads{
		Tasks: &background.Tasks{}, Now: func() int64 { return *now }, Joinable: lookups.TTL(time.Second),
	}
}

// none keeps nothing.
func none([]*testRead) {}

// keys are those of reads.
func keys(reads []*testRead) (all []string) {
	for _, read := range reads {
		all = append(all, read.Key)
	}
	return all
}

// wants compares what a read has returned.
func wants(t *testing.T, read *testRead, value int, err error) {
	t.Helper()
	if got, gotErr := read.Wait(t.Context()); got != value || !errors.Is(gotErr, err) {
		t.Errorf("%s: %d, %v, want %d, %v", read.Key, got, gotErr, value, err)
	}
}

// TestJoin: a caller joins what is under way, and reads the rest. Nothing stays once all has ended.
func TestJoin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := int64(1000)
		r := newReads(&now)
		deliver := make(chan struct{})
		var begun [][]string
		read := func(all []*testRead) {
			begun = append(begun, keys(all))
			<-deliver // in the order of beginning
			for _, one := range all {
				one.Set(len(one.Key), nil)
			}
		}
		kept := 0
		keep := func(all []*testRead) {
			for _, one := range all {
				if n, ok := one.Value(); ok {
					kept += n
				}
			}
		}
		first := r.Join([]string{"a", "bb", "a"}, read, keep)
		synctest.Wait()
		now += 10
		second := r.Join([]string{"bb", "ccc"}, read, keep)
		synctest.Wait()
		if first[0] != first[2] || first[1] != second[0] || second[0].Began != 1000 || second[1].Began != 1010 ||
			second[1].Number <= first[1].Number {
			t.Errorf("%+v and %+v", first[1], second[1])
		}
		if want := [][]string{{"a", "bb"}, {"ccc"}}; !slices.EqualFunc(begun, want, slices.Equal[[]string]) {
			t.Errorf("read %q, want %q", begun, want)
		}
		if _, ok := second[0].Value(); ok {
			t.Error("a read under way has a value")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := second[0].Wait(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%v, want the context's end", err)
		}
		deliver <- struct{}{}
		synctest.Wait()
		deliver <- struct{}{}
		if err := r.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		for _, one := range slices.Concat(first, second) {
			wants(t, one, len(one.Key), nil)
		}
		if want := 1 + 2 + 1 + 2 + 3; kept != want || len(r.byKey) != 0 {
			t.Errorf("kept %d, want %d; %d reads are left", kept, want, len(r.byKey))
		}
	})
}

// TestJoinable: a read may be joined for as long as Joinable says, not if the clock was set back, and until
// what it read was kept. One that has been replaced leaves the place of its successor as it is.
func TestJoinable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		now := int64(1000)
		r := newReads(&now)
		deliver, kept := make(chan struct{}), make(chan struct{})
		join := func(at int64) *testRead {
			now = at
			return r.Join([]string{"a"}, func(all []*testRead) {
				<-deliver
				all[0].Set(int(all[0].Number), nil)
			}, func([]*testRead) { <-kept })[0]
		}
		first := join(1000)
		if join(1999) != first {
			t.Error("a read was not joined within a second")
		}
		second := join(2000)
		third := join(1999)
		if second == first || third == second || third == first {
			t.Error("a read was joined after a second, or from before the clock was set back")
		}
		close(deliver)
		wants(t, first, 1, nil)
		wants(t, second, 2, nil)
		wants(t, third, 3, nil)
		if join(2000) != third {
			t.Error("what was read is not kept yet, and was read again")
		}
		close(kept)
		synctest.Wait()
		if join(2000) == third {
			t.Error("a read was joined after it had been kept")
		}
		if err := r.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// TestFailed: nobody joins a read that has failed, one for which Set was not called, or one that has left its
// goroutine; none of them has its callers hang.
func TestFailed(t *testing.T) {
	failure := errors.New("down")
	for name, test := range map[string]struct {
		read func([]*testRead)
		want error
	}{
		"fails":   {func(all []*testRead) { all[0].Set(0, failure) }, failure},
		"forgets": {none, errUnread},
		"exits":   {func([]*testRead) { runtime.Goexit() }, errUnread},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				now := int64(1000)
				r := newReads(&now)
				kept := make(chan struct{})
				first := r.Join([]string{"a"}, test.read, func([]*testRead) { <-kept })[0]
				wants(t, first, 0, test.want)
				if _, ok := first.Value(); ok {
					t.Error("it has a value")
				}
				second := r.Join([]string{"a"}, func(all []*testRead) { all[0].Set(7, nil) }, none)[0]
				wants(t, second, 7, nil)
				close(kept)
				if err := r.Tasks.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if len(r.byKey) != 0 {
					t.Errorf("%d reads are left", len(r.byKey))
				}
			})
		})
	}
}
