//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sluice-go/sluice/examples/regions/limits"
	"github.com/sluice-go/sluice/internal/test/child"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// regions are those of examples/regions, each with a table of its own in one DynamoDB. Their windows are of a
// second, the shortest that there is.
type regions struct {
	t        *testing.T
	endpoint string // of the DynamoDB, over HTTP
	folder   string // to which all publish
	all      []*site
	whole    int64 // tokens of the limit in all regions together
	floor    int64 // what each region keeps
	most     int64 // the largest sum of quotas in force so far
}

// site is one region: its table, a service that calls, and the process of its sync.
type site struct {
	name, table string
	spec        *store.Spec
	lim         *limits.Limiter
	regional    *operator.Regional
	inspect     func(context.Context) (*bucket.Image, error)
	link        string // its own path to the folder
	process     *child.Process
	said        *bytes.Buffer // by the process; read it once that is gone
	granted     atomic.Int64
	seen
}

// seen is what a region's table had at the last look.
type seen struct {
	beat   store.Heartbeat
	alive  bool  // the heartbeat
	quota  int64 // in force
	stored int64 // the quota item's, in force or not
	moves  int   // changes of stored so far
}

// user is who calls, in all regions.
var user = limits.User{ID: "1"}

func newRegions(t *testing.T) *regions {
	t.Helper()
	engine := memdynamo.New()
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	r := &regions{t: t, endpoint: server.URL, folder: t.TempDir()}
	for _, name := range []string{"ap", "eu", "us"} {
		s := &site{name: name, table: "limits-" + name, link: filepath.Join(t.TempDir(), name)}
		client := engine.Client()
		if _, err := operator.CreateTable(t.Context(), client, s.table); err != nil {
			t.Fatal(err)
		}
		var err error
		if s.lim, err = limits.New(dynamo.New(client, s.table),
			runtime.WithLogger(slog.New(slog.DiscardHandler))); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(r.folder, s.link); err != nil {
			t.Fatal(err)
		}
		s.spec, s.regional = s.lim.Specs()[0], operator.NewRegional(client, s.table, time.Now)
		s.inspect = func(ctx context.Context) (*bucket.Image, error) {
			return operator.Inspect(ctx, client, s.table, "user-1", limits.Chat)
		}
		limit := s.spec.Kinds[0].Limits[0]
		r.whole, r.floor = limit.Capacity/bucket.Milli, s.spec.Regions.Keeps(limit).Capacity/bucket.Milli
		r.all = append(r.all, s)
	}
	return r
}

// start starts the sync of s.
func (r *regions) start(s *site) {
	r.t.Helper()
	cmd := exec.Command("sluice", "region", "sync", "--as", s.name, "--table", s.table, "--endpoint", r.endpoint,
		"--file", "../../examples/regions/limits.yaml", "--snapshots", "file://"+s.link, "--evict", "5s")
	s.said = &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = s.said, s.said
	process, err := child.Start(cmd)
	if err != nil {
		r.t.Fatal(err)
	}
	said := s.said
	s.process = process
	r.t.Cleanup(func() {
		if err := process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			r.t.Error(err)
		}
		if r.t.Failed() {
			r.t.Logf("%s, process %d:\n%s", s.name, process.Pid(), said)
		}
	})
}

// signal sends a signal to the sync of s.
func (r *regions) signal(s *site, signal syscall.Signal) {
	r.t.Helper()
	if err := syscall.Kill(s.process.Pid(), signal); err != nil {
		r.t.Fatalf("%v to %s: %v", signal, s.name, err)
	}
}

// call has a service of each region call until the function it returns is called. It calls 180, 60 or 20
// times a second; every four seconds each region's demand becomes that of the next.
func (r *regions) call() (end func()) {
	ctx, cancel := context.WithCancel(r.t.Context())
	var running sync.WaitGroup
	began := time.Now()
	for i, s := range r.all {
		running.Go(func() {
			tick := time.NewTicker(time.Second / 180)
			defer tick.Stop()
			for n := 0; ; n++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				if every := [...]int{9, 1, 3}[(i+int(time.Since(began)/(4*time.Second)))%3]; n%every > 0 {
					continue
				}
				_, err := s.lim.Chat.Acquire(r.t.Context(), user, limits.ChatCost{})
				if _, denied := errors.AsType[*limits.DeniedError](err); err != nil && !denied {
					r.t.Errorf("a call in %s: %v", s.name, err)
					return
				} else if !denied {
					s.granted.Add(1)
				}
			}
		})
	}
	return func() {
		cancel()
		running.Wait()
	}
}

// recent is for how long a bucket's limit counts after a call: services call more often.
const recent = 100 * time.Millisecond

// look reads all tables, and fails if more than the whole limit is in force at now. In a region the quota is
// in force that a process would read there now, or the one that a call has just used, if that is more.
func (r *regions) look(ctx context.Context, now time.Time) error {
	sum, began := int64(0), time.Now()
	for _, s := range r.all {
		img, err := s.inspect(ctx)
		if err != nil {
			return err
		}
		if s.beat, err = s.regional.Heartbeat(ctx); err != nil {
			return err
		}
		items, err := s.regional.Get(ctx, s.spec, "user-1")
		if err != nil {
			return err
		}
		before := s.stored
		s.alive, s.quota, s.stored = s.beat.Alive(now.UnixMilli()), r.floor, r.floor
		if items[0].Overrides() {
			s.stored = items[0].Limits[0].Capacity / bucket.Milli
			if s.beat.Holds(items[0], now.UnixMilli()) {
				s.quota = s.stored
			}
		}
		if before != s.stored {
			s.moves++
		}
		sum += s.quota
		if img != nil && now.UnixMilli()-img.Refilled <= recent.Milliseconds() {
			sum += max(0, img.Extra[0].Capacity/bucket.Milli-s.quota)
		}
	}
	if time.Since(began) > time.Second/2 { // on a starved machine: quotas move within a window
		return nil
	}
	if r.most = max(r.most, sum); sum > r.whole {
		return fmt.Errorf("%d are in force, more than %d: %s", sum, r.whole, r)
	}
	return nil
}

// String says what was seen last.
func (r *regions) String() string {
	all := make([]string, len(r.all))
	for i, s := range r.all {
		all[i] = fmt.Sprintf("%s %d (epoch %d, alive %t, stored %d)", s.name, s.quota, s.beat.Epoch, s.alive,
			s.stored)
	}
	return strings.Join(all, ", ")
}

// await looks at the tables until done, which is called after each look.
func (r *regions) await(ctx context.Context, what string, done func() bool) {
	r.t.Helper()
	began := time.Now()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := r.look(r.t.Context(), time.Now()); err != nil {
			r.t.Fatalf("until %s: %v", what, err)
		}
		if done() {
			r.t.Logf("%4.1f s until %s: %s", time.Since(began).Seconds(), what, r)
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			r.t.Fatalf("%v, and still waiting until %s: %s", context.Cause(ctx), what, r)
		}
	}
}

// works waits until all regions are alive with more than the floor, and have most of the limit together. Each
// has granted calls since works was called, and one has another quota.
func (r *regions) works(ctx context.Context, after string) {
	r.t.Helper()
	granted, moves := make([]int64, len(r.all)), make([]int, len(r.all))
	for i, s := range r.all {
		granted[i], moves[i] = s.granted.Load(), s.moves
	}
	r.await(ctx, "work goes on after "+after, func() bool {
		sum, moved := int64(0), false
		for i, s := range r.all {
			if !s.alive || s.quota <= r.floor || s.granted.Load() == granted[i] {
				return false
			}
			sum, moved = sum+s.quota, moved || s.moves > moves[i]
		}
		return moved && sum > r.whole*8/10
	})
}

// TestRegionProcesses has three syncs, each a process of its own, share out a limit while services call. One
// is stopped until the others have ended its epoch, one is killed and started again, and one cannot read its
// folder for a while. The quotas in force never add up to more than the limit, and work goes on.
func TestRegionProcesses(t *testing.T) {
	longform.NoRace(t, "what it tests is in other processes")
	longform.Only(t, "TestLiveFaults of examples/regions injures syncs in one process")
	r := newRegions(t)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("two minutes have passed"))
	defer cancel()
	for _, s := range r.all {
		r.start(s)
	}
	defer r.call()()
	r.works(ctx, "the start")

	largest := slices.IndexFunc(r.all, func(s *site) bool {
		return !slices.ContainsFunc(r.all, func(other *site) bool { return other.quota > s.quota })
	})
	stopped, killed, blind := r.all[largest], r.all[(largest+1)%3], r.all[(largest+2)%3]
	t.Logf("%s is stopped, %s killed, %s cannot read its folder", stopped.name, killed.name, blind.name)
	r.signal(stopped, syscall.SIGSTOP)
	stoppedAt, killedAt, blindAt := stopped.seen, killed.seen, blind.seen
	if err := killed.process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.start(killed)
	if err := errors.Join(os.Remove(blind.link), os.WriteFile(blind.link, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	r.await(ctx, "the one that was killed goes on", func() bool {
		return killed.beat.Expires > killedAt.beat.Expires && killed.beat.Epoch == killedAt.beat.Epoch &&
			killed.quota > r.floor
	})
	r.await(ctx, "the one that cannot read its folder has the floor", func() bool { return !blind.alive })
	if err := errors.Join(os.Remove(blind.link), os.Symlink(r.folder, blind.link)); err != nil {
		t.Fatal(err)
	}
	r.await(ctx, "the one that can read its folder again goes on", func() bool {
		return blind.alive && blind.beat.Epoch == blindAt.beat.Epoch && blind.quota > r.floor
	})
	r.await(ctx, "the others have what the stopped one had", func() bool {
		return !stopped.alive && killed.quota+blind.quota > r.whole-stoppedAt.quota
	})
	r.signal(stopped, syscall.SIGCONT)
	r.await(ctx, "the stopped one begins a new epoch", func() bool {
		return stopped.alive && stopped.beat.Epoch > stoppedAt.beat.Epoch
	})
	r.works(ctx, "all of that")
	t.Logf("at most %d of %d were in force", r.most, r.whole)
}

// TestMoreInForce is the control of TestRegionProcesses. A look at quotas beyond the whole limit fails, as
// does one at a bucket that was just used with more than the stored quota.
func TestMoreInForce(t *testing.T) {
	r := newRegions(t)
	quota := func(i int, tokens int64) {
		t.Helper()
		s := r.all[i]
		limit := s.spec.Kinds[0].Limits[0].Quota(tokens)
		if _, err := s.regional.PutQuota(t.Context(), s.spec, store.Stored{At: "user-1", Epoch: 1,
			Limits: []*bucket.Limit{&limit}}); err != nil {
			t.Fatal(err)
		}
	}
	for i, tokens := range []int64{100, 60, 40} {
		beat := store.Heartbeat{Epoch: 1, Expires: time.Now().Add(time.Minute).UnixMilli(), Region: r.all[i].name}
		if err := r.all[i].regional.PutHeartbeat(t.Context(), beat); err != nil {
			t.Fatal(err)
		}
		quota(i, tokens)
	}
	if _, err := r.all[0].lim.Chat.Acquire(t.Context(), user, limits.ChatCost{}); err != nil {
		t.Fatal(err)
	}
	img, err := r.all[0].inspect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	used := time.UnixMilli(img.Refilled)
	look := func(after time.Duration, want string) {
		t.Helper()
		if err := r.look(t.Context(), used.Add(after)); (err != nil) != (want != "") ||
			err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v after the call: %v, want %q", after, err, want)
		}
	}
	look(0, "")
	quota(0, 90)
	quota(1, 70)
	look(0, "210 are in force, more than 200: ap 90 ")
	look(time.Second, "")
	quota(2, 41)
	look(time.Second, "201 are in force, more than 200: ap 90 ")
	look(2*time.Minute, "") // no heartbeat, no quota
}
