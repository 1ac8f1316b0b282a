package redisstore

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/audited"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// mortal is a process that dies after so many requests: the reply of the last one is lost.
type mortal struct {
	left   int    // 0 for one that lives
	end    func() // its context
	split  bool   // records are written by a second call, of client
	client *redis.Client
}

func (m *mortal) DialHook(next redis.DialHook) redis.DialHook { return next }

// arrive sends one request, and returns what the process sees of it.
func (m *mortal) arrive(send func() error) error {
	if m.end == nil {
		return send()
	}
	if m.left--; m.left < 0 {
		return context.Canceled
	}
	err := send()
	if m.left == 0 {
		m.end()
		return context.Canceled
	}
	return err
}

func (m *mortal) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := m.arrive(func() error { return next(ctx, cmd) })
		name := cmd.Name()
		if !m.split || name != "eval" && name != "evalsha" || redis.HasErrorPrefix(cmd.Err(), "NOSCRIPT") {
			return err
		}
		// the record is taken back, and written by a second call
		list := cmd.Args()[4]
		taken, none := m.client.RPop(context.WithoutCancel(ctx), list.(string)).Result()
		if none == nil && !errors.Is(err, context.Canceled) {
			return errors.Join(err, m.arrive(func() error {
				return m.client.RPush(context.WithoutCancel(ctx), list.(string), taken).Err()
			}))
		}
		return err
	}
}

func (m *mortal) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		return m.arrive(func() error { return next(ctx, cmds) })
	}
}

// auditedRedis returns an empty Redis. split has records be written by a second call.
func auditedRedis(t *testing.T, tags, split bool) *audited.World {
	t.Helper()
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr(), MaxRetries: -1})
	process := &mortal{split: split, client: redis.NewClient(&redis.Options{Addr: server.Addr()})}
	client.AddHook(process)
	t.Cleanup(func() { _, _ = client.Close(), process.client.Close() })
	s := New(client)
	s.db.Keys.HashTags = tags
	return &audited.World{
		Overrides: s.Overrides(), Members: s.Members(), Catalog: s.Catalog(), Changes: s.Changes,
		Kill: func(ctx context.Context, n int) (context.Context, func()) {
			ctx, cancel := context.WithCancel(ctx)
			process.left, process.end = n, cancel
			return ctx, func() { cancel(); process.end = nil }
		},
	}
}

// TestAudited: each change has its record, whatever becomes of the process. Control: a record that is written
// in a second call.
func TestAudited(t *testing.T) {
	ctx := store.ChangedBy(t.Context(), "alice", "")
	for _, tags := range []bool{false, true} {
		found := audited.Problems(ctx, func() *audited.World { return auditedRedis(t, tags, false) })
		for _, problem := range found {
			t.Errorf("hash tags %t: %s", tags, problem)
		}
	}
	found := audited.Problems(ctx, func() *audited.World { return auditedRedis(t, false, true) })
	for _, thing := range audited.Things() {
		if !slices.ContainsFunc(found, func(problem string) bool {
			return strings.HasPrefix(problem, "killed after ") && strings.Contains(problem, thing+": the records end ")
		}) {
			t.Errorf("%s: nobody noticed a record in a second call: %q", thing, found)
		}
	}
}

// TestEraseRecords: what is stored of an entity goes with the records of its changes, and others' stay.
func TestEraseRecords(t *testing.T) {
	for _, tags := range []bool{false, true} {
		w := auditedRedis(t, tags, false)
		for _, entity := range []string{"org-7", "org-17"} {
			if err := w.Members.SetPlan(t.Context(), entity, "pro", nil); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := w.Members.Erase(t.Context(), "org-7", store.Erasing{}); n.Other != 3 || err != nil {
			t.Errorf("erased %+v, %v, want the entity, its records and their set", n, err)
		}
		for entity, want := range map[string]int{"org-7": 0, "org-17": 1} {
			n := 0
			for _, err := range w.Changes(t.Context(), store.Audited{Entity: entity}, time.Time{}) {
				if n++; err != nil {
					t.Fatal(err)
				}
			}
			if n != want {
				t.Errorf("%s has %d records, want %d", entity, n, want)
			}
		}
	}
}

// TestRecordsTogether: on a cluster a record is in the slot of what it is of. An id for which there is no
// such key is refused.
func TestRecordsTogether(t *testing.T) {
	w := auditedRedis(t, true, false)
	for id, ok := range map[string]bool{"org-7": true, "org-{a}b": true, "org-a{": true, "org-a}": false} {
		err := w.Members.SetPlan(t.Context(), id, "pro", nil)
		if _, invalid := errors.AsType[*store.InvalidError](err); invalid == ok || ok && err != nil {
			t.Errorf("%s: %v, want it stored: %t", id, err, ok)
		}
	}
}

// TestNoChangeWithoutRecord: if the record cannot be written, nothing changes.
func TestNoChangeWithoutRecord(t *testing.T) {
	server := miniredis.RunT(t)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	t.Cleanup(func() { _ = client.Close() })
	s, spec, ctx := New(client), audited.Spec(), t.Context()
	for _, list := range []string{
		"#config:model:key-1", "#plans:model", "#catalog:model:gpt-5", "#entity:org-7",
	} {
		if err := server.Set("sluice:#audit:"+list, "not a list"); err != nil {
			t.Fatal(err)
		}
	}
	limit := bucket.Per(5, time.Minute)
	for _, at := range []string{"key-1", "pro.key"} {
		_, err := s.Overrides().Set(ctx, spec, store.Stored{At: at, Limits: []*bucket.Limit{&limit, nil}})
		stored, readErr := s.Overrides().Get(ctx, spec, at)
		if err == nil || readErr != nil || stored[0].Overrides() || stored[0].Revision != "" {
			t.Errorf("%s: %v, and then %+v, %v", at, err, stored, readErr)
		}
	}
	_, err := s.Catalog().Set(ctx, spec, store.Entry{Name: "gpt-5"})
	if _, found, readErr := s.Catalog().Get(ctx, spec, "gpt-5"); err == nil || found || readErr != nil {
		t.Errorf("an entry: %v, and then %t, %v", err, found, readErr)
	}
	err = s.Members().SetPlan(ctx, "org-7", "pro", nil)
	if m, _, readErr := s.Members().Get(ctx, "org-7"); err == nil || m.Plan != "" || readErr != nil {
		t.Errorf("a plan: %v, and then %+v, %v", err, m, readErr)
	}
}

// TestRecordsOfManyNames: a catalog that is filled at once has the record of each name.
func TestRecordsOfManyNames(t *testing.T) {
	w := auditedRedis(t, true, false)
	const names = 1_001 // a place keeps 1,000
	for i := range names {
		if _, err := w.Catalog.Set(t.Context(), audited.Spec(), store.Entry{Name: strconv.Itoa(i)}); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	for _, err := range w.Changes(t.Context(), store.Audited{Catalog: "model"}, time.Time{}) {
		if n++; err != nil {
			t.Fatal(err)
		}
	}
	if n != names {
		t.Errorf("%d records, want %d", n, names)
	}
}
