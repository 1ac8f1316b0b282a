package known

import (
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/store"
)

// t0 is an instant, in ms.
const t0 = 1_700_000_000_000

// TestConflictsBeforeASetBack: that others were at work is forgotten as well.
func TestConflictsBeforeASetBack(t *testing.T) {
	b := &Bucket{}
	b.NoteConflict(t0, true)
	for now, want := range map[int64][2]bool{
		t0: {true, true}, t0 + slackFor: {true, false}, t0 + contendedFor: {false, false},
		t0 - 1: {false, false}, t0 - time.Hour.Milliseconds(): {false, false},
	} {
		if got := [2]bool{b.IsContended(now), b.LeavesSlack(now)}; got != want {
			t.Errorf("at %d: contended and slack %v, want %v", now-t0, got, want)
		}
	}
}

// TestYoungerImageStays: replies overtake each other, and an older one replaces no younger image. One that is
// much older does: the clock was set back, and what follows is dated by it.
func TestYoungerImageStays(t *testing.T) {
	older, younger := &bucket.Image{Op: "older"}, &bucket.Image{Op: "younger"}
	for name, test := range map[string]struct {
		known, reply int64 // when the two images were true, relative to t0
		replaces     bool
	}{
		"younger":                      {0, 1, true},
		"of the same instant":          {0, 0, true},
		"older":                        {0, -1, false},
		"older by what is trusted":     {0, -TrustedFor, false},
		"from before a clock set back": {0, -TrustedFor - 1, true},
	} {
		b := &Bucket{}
		b.Update(younger, t0+test.known)
		b.Update(older, t0+test.reply)
		want, wantAt := younger, t0+test.known
		if test.replaces {
			want, wantAt = older, t0+test.reply
		}
		if img, at, _ := b.Snapshot(); img != want || at != wantAt {
			t.Errorf("%s: %s, of %d, want %s, of %d", name, img.Op, at-t0, want.Op, wantAt-t0)
		}
	}
}

// TestPredictedImage: a prediction replaces a true image, and any true one replaces a prediction. Nothing
// that was true is older than an image that was dropped.
func TestPredictedImage(t *testing.T) {
	seen, predicted := &bucket.Image{Op: "seen"}, &bucket.Image{Op: "predicted"}
	b := &Bucket{}
	b.Update(seen, t0)
	for _, step := range []struct {
		img  *bucket.Image
		at   int64
		want *bucket.Image
	}{
		{predicted, Predicted, predicted}, {seen, t0 - 1, seen}, {nil, t0, nil}, {seen, t0 - 1, seen},
	} {
		b.Update(step.img, step.at)
		if img, at, _ := b.Snapshot(); img != step.want || at != step.at {
			t.Errorf("%v of %d, want %v of %d", img, at, step.want, step.at)
		}
	}
	b.Invalidate()
	if img, at, _ := b.Snapshot(); img != nil || at != Predicted {
		t.Errorf("%v of %d, want nothing that is known", img, at)
	}
}

// scene is an empty bucket of 10 tokens a minute that a process saw at t0, with the overrides that it read
// then.
type scene struct {
	res    *Resource
	bucket *Bucket
	img    *bucket.Image
	shape  override.Resolved
	seenAt int64
	cost   []int64
	now    int64
	moved  map[string]int64 // entities whose plan this process has changed, and when
}

// cacheTTL is how long the reader of scenes uses overrides.
const cacheTTL = 400 * time.Millisecond

func newScene() *scene {
	limit := bucket.Per(10, time.Minute)
	s := &scene{
		res: &Resource{shared: &shared{writes: make([]atomic.Int64, 1)}}, bucket: &Bucket{},
		seenAt: t0, cost: []int64{1000}, now: t0 + 1,
		img: &bucket.Image{
			Refilled: t0, Version: 7, Balances: []bucket.Balance{{Limit: limit}}, Missing: []bool{false},
		},
	}
	s.bucket.of = s.res
	s.res.Spec = &store.Spec{Resource: "embeddings", Limits: []string{"rps"},
		Kinds: []store.Kind{{Limits: []bucket.Limit{limit}}}}
	s.bucket.At = wire.Bucket{Resource: &wire.Resource{}, Entity: "user-1"}
	s.shape.ReadAt = t0
	s.shape.Shape = plan.Shape{Limits: []bucket.Limit{limit}, Version: 7}
	return s
}

// refused returns what Refused says of s.
func (s *scene) refused() *store.DeniedError {
	s.bucket.image, s.bucket.seenAt, s.bucket.shape = s.img, s.seenAt, &s.shape
	r := &Reader{Conn: &wire.Conn{Env: &store.Env{CacheTTL: cacheTTL}}}
	r.moves.at = s.moved
	r.moves.any.Store(len(s.moved) > 0)
	return r.Refused(s.res, []*Bucket{s.bucket}, s.cost, s.now)
}

// TestRefused: only what is certainly as it was seen denies without a call.
func TestRefused(t *testing.T) {
	ttl := cacheTTL.Milliseconds()
	for name, test := range map[string]struct {
		change func(*scene)
		denies bool
	}{
		"empty":                                 {func(*scene) {}, true},
		"as young as is trusted":                {func(s *scene) { s.seenAt = s.now - TrustedFor }, true},
		"seen too long ago":                     {func(s *scene) { s.seenAt = s.now - TrustedFor - 1 }, false},
		"seen in the future":                    {func(s *scene) { s.seenAt = s.now + 1 }, false},
		"predicted":                             {func(s *scene) { s.seenAt = Predicted }, false},
		"overrides not due yet":                 {func(s *scene) { s.shape.ReadAt = s.now - ttl + 1 }, true},
		"overrides due":                         {func(s *scene) { s.shape.ReadAt = s.now - ttl }, false},
		"overrides read in the future":          {func(s *scene) { s.shape.ReadAt = s.now + 1 }, false},
		"to be reshaped":                        {func(s *scene) { s.shape.Version++ }, false},
		"reshaped by newer processes":           {func(s *scene) { s.img.Version++ }, true},
		"a limit is missing":                    {func(s *scene) { s.img.Missing[0] = true }, false},
		"an own write of the entity's override": {func(s *scene) { s.bucket.own.Add(1) }, false},
		"an own write of the kind's override":   {func(s *scene) { s.res.writes[0].Add(1) }, false},
		"an own write of the plans":             {func(s *scene) { s.res.planWrites.Add(1) }, false},
		"a call has found a later plan":         {onPlan("org-1", 3), false},
		"a call has found an earlier plan":      {onPlan("org-1", 1), true},
		"a call has found another org":          {onPlan("org-2", 1), false},
		"a call has found that it has none":     {onPlan("org-1", 0), false},
		"this process has just moved the org":   {movedAt("org-1", TrustedFor), false},
		"it moved the org a second ago":         {movedAt("org-1", TrustedFor+1), true},
		"it moved another org":                  {movedAt("org-2", 0), true},
		"it moved the entity to another org":    {movedAt("user-1", 0), false},
		"a refresh is under way":                {func(s *scene) { s.bucket.setRefresh(&Refresh{}) }, false},
		"a settle is to give back":              {func(s *scene) { s.bucket.AddGiveBacks(1) }, false},
		"the settle has given back": {func(s *scene) {
			s.bucket.AddGiveBacks(1)
			s.bucket.AddGiveBacks(-1)
		}, true},
		"more than it can ever have":    {func(s *scene) { s.cost[0] = 10_001 }, false},
		"nothing is taken":              {func(s *scene) { s.cost[0] = 0 }, false},
		"something is given back":       {func(s *scene) { s.cost[0] = -1000 }, false},
		"it has enough":                 {func(s *scene) { s.img.Balances[0].Tokens = 1000 }, false},
		"the refill since is enough":    {func(s *scene) { s.img.Refilled -= 6000 }, false},
		"the refill since is not quite": {func(s *scene) { s.img.Refilled -= 5996 }, true},
		"the quota's heartbeat ended": {func(s *scene) {
			s.res.Spec.Regions = &store.Regions{Window: cacheTTL}
			s.shape.Quota = &override.Quota{Ends: s.now}
		}, false},
		"the quota's heartbeat lasts": {func(s *scene) {
			s.res.Spec.Regions = &store.Regions{Window: cacheTTL}
			s.shape.Quota = &override.Quota{Ends: s.now + 1}
		}, true},
	} {
		s := newScene()
		test.change(s)
		if err := s.refused(); (err != nil) != test.denies {
			t.Errorf("%s: %v, want a denial: %t", name, err, test.denies)
		}
	}
}

// onPlan has a call find an org, and the version of its plan. Before, it was version 2 of org-1.
func onPlan(of string, version int64) func(*scene) {
	return func(s *scene) {
		s.shape.On = &store.OnPlan{Of: "org-1", Version: 2}
		s.bucket.on = s.shape.On
		s.bucket.NotePlan(&store.OnPlan{Of: of, Version: version}, false)
	}
}

// movedAt has the process change the plan or the parent of an entity so many ms ago. user-1 is in org-1.
func movedAt(entity string, ago int64) func(*scene) {
	return func(s *scene) {
		onPlan("org-1", 2)(s)
		s.moved = map[string]int64{entity: s.now - ago}
	}
}

// TestMovesAreDropped: a session that changes the plans of many entities, and is never asked for a denial,
// remembers those of the last second alone.
func TestMovesAreDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &Reader{Conn: wire.NewConn(nil, "", &store.Env{Clock: store.SystemClock()})}
		const each = 10 * time.Millisecond
		within := int(TrustedFor * time.Millisecond / each)
		for i := range 100 * within {
			r.Moved("user-" + strconv.Itoa(i))
			if n := len(r.moves.at); n > 2*(within+fewMoves) {
				t.Fatalf("%d entities after %d, want at most twice the %d of a second", n, i+1, within)
			}
			time.Sleep(each) //nolint:forbidigo // in a bubble of testing/synctest
		}
	})
}

// TestRefusedIsShared: calls of one cost in one millisecond share a denial by the same image. It says what
// is wanted, what is there, and how long to wait.
func TestRefusedIsShared(t *testing.T) {
	for name, test := range map[string]struct {
		change    func(*scene)
		shared    bool
		requested int64
		wait      time.Duration
	}{
		"as before":       {func(*scene) {}, true, 5, 11_997 * time.Millisecond},
		"another cost":    {func(s *scene) { s.cost = []int64{6000} }, false, 6, 17_997 * time.Millisecond},
		"another instant": {func(s *scene) { s.now++ }, false, 5, 11_996 * time.Millisecond},
		"another image": {func(s *scene) {
			before := *s.img
			before.Refilled--
			s.img = &before
		}, false, 5, 11_997 * time.Millisecond},
	} {
		s := newScene()
		s.img.Balances[0].Tokens, s.cost[0] = 3000, 5000
		first := s.refused()
		if first == nil || first.Requested != 5 || first.Available != 3 {
			t.Fatalf("%+v, want 3 of 5 tokens", first)
		}
		test.change(s)
		second := s.refused()
		if (second == first) != test.shared || second.Requested != test.requested ||
			second.RetryAfter != test.wait {
			t.Errorf("%s: shared %t: %+v", name, second == first, second)
		}
	}
}
