package dynamo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// skewed is a clock that is so many ms ahead of the tests'.
type skewed struct {
	*handClock
	ahead int64
}

func (c skewed) Now() time.Time {
	return c.handClock.Now().Add(time.Duration(c.ahead) * time.Millisecond)
}

// mostSkew is by how much the clocks of a shareStorm differ from the tests' at the most, ms. Check reports a
// second between two.
const mostSkew = 400

// quotaStorm is processes on one bucket of a regional resource, with different clocks and cache expiries.
// Sync and operators change the limits in force meanwhile.
type quotaStorm struct {
	*engine
	t         testing.TB
	rng       *rand.Rand
	def       *variant
	processes []*desk
	sync      sync1
	now       func() time.Time // sync's
	operator  manager
	epoch     int64
	was       []moment // what was in force, by what was stored
}

// moment is an instant, ms since t0, and whole tokens that are in force from then on.
type moment struct{ at, tokens int64 }

func newQuotaStorm(
	t testing.TB,
	seed uint64,
	through func(wire.API) wire.API,
	opts ...storeChange,
) *quotaStorm {
	t.Helper()
	e, _ := newFaulty(t) // 100,000 calls
	e.ttl = time.Minute
	s := &quotaStorm{engine: e, t: t, rng: rand.New(rand.NewPCG(seed, 10)), def: global(t), epoch: 1}
	s.sync = e.sync(t, s.def)
	ahead := func() int64 { return s.rng.Int64N(2*mostSkew) - mostSkew }
	s.now = skewed{&e.clock, ahead()}.Now
	s.sync.Regional = operator.RegionalWith(e.client, e.retrier(), s.now)
	s.operator = e.manager(s.def, ahead())
	for _, ttl := range []time.Duration{time.Second, 7 * time.Second, time.Minute} {
		d := &desk{events: &events{}}
		options := append(e.options(d.events),
			runtime.WithClock(skewed{&e.clock, ahead()}), runtime.WithCacheTTL(ttl))
		_, resources := storetest.Open[user](t, newStore(through(e.client), e.table, opts...), options, s.def)
		d.Resource = resources[0]
		s.processes = append(s.processes, d)
	}
	s.note()
	return s
}

// stored is what is in force at an instant by what is stored, by the words of the issue.
func (s *quotaStorm) stored(at int64) int64 {
	overrides, err := s.operator.Get(s.t.Context(), s.def.Spec(), "user-1")
	if err != nil {
		s.t.Fatal(err)
	}
	beat, err := s.operator.Heartbeat(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	own := overrides[0]
	if own.Limits[0] == nil || own.Epoch > 0 && (own.Epoch != beat.Epoch || t0+at >= beat.Expires) {
		return 50
	}
	return own.Limits[0].Capacity / bucket.Milli
}

// note notes what is in force now.
func (s *quotaStorm) note() {
	now := s.clock.Since.Load()
	if is := s.stored(now); len(s.was) == 0 || s.was[len(s.was)-1].tokens != is {
		s.was = append(s.was, moment{now, is})
	}
}

// passes has time pass, and notes the end of the heartbeat.
func (s *quotaStorm) passes(ms int64) {
	beat, err := s.operator.Heartbeat(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	now := s.clock.Since.Load()
	if end := beat.Expires - t0; now < end && end < now+ms {
		s.clock.set(end)
		s.note()
	}
	s.clock.set(now + ms)
	s.note()
}

// lately reports that so many tokens were in force at some instant within the last window, by one of the
// clocks.
func (s *quotaStorm) lately(tokens int64) bool {
	from := s.clock.Since.Load() - window - 2*mostSkew
	for i, m := range s.was {
		over := i+1 < len(s.was) && s.was[i+1].at < from
		if m.tokens == tokens && !over {
			return true
		}
	}
	// A clock that is ahead sees the heartbeat end before the tests' does.
	return tokens == s.stored(s.clock.Since.Load()+2*mostSkew)
}

// happens is something that sync, an operator or time does.
func (s *quotaStorm) happens() string {
	rng := s.rng
	switch rng.IntN(12) {
	case 0, 1, 2:
		s.sync.alive(s.epoch)
		return "beat"
	case 3, 4, 5:
		quota := store.Stored{At: "user-1", Epoch: s.epoch, Limits: []*bucket.Limit{nil}}
		if n := rng.Int64N(400); n > 20 {
			part := daily.Quota(n)
			quota.Limits[0] = &part
		}
		if _, err := s.sync.PutQuota(s.t.Context(), s.def.Spec(), quota); err != nil &&
			!isA[*store.ConflictError](err) {
			s.t.Fatal(err)
		}
		return "quota"
	case 6:
		s.epoch++
		err := s.sync.PutHeartbeat(s.t.Context(), store.Heartbeat{Epoch: s.epoch, Expires: s.now().UnixMilli()})
		if err != nil {
			s.t.Fatal(err)
		}
		return "epoch"
	case 7:
		limit := daily.Quota(401 + rng.Int64N(100))
		s.operator.set(s.t, "user-1", &limit)
		return "operator"
	case 8, 9:
		s.operator.set(s.t, "user-1", nil)
		return "given back"
	}
	s.passes([]int64{50, 500, 2000, 9000, 12_000, 31_000}[rng.IntN(6)])
	return "time"
}

// holds is the capacity of the bucket, in whole tokens.
func (s *quotaStorm) holds() int64 {
	return number(s.get(s.t, item.BucketKey("user-1", "embeddings"))["b_rps_cp"]) / bucket.Milli
}

// run returns what went wrong, and how often the bucket got other numbers.
func (s *quotaStorm) run(steps int) (wrong []string, reshapes int) {
	for range steps {
		what := s.happens()
		s.note()
		i := s.rng.IntN(len(s.processes))
		switch _, err := s.processes[i].Acquire(s.t.Context(), "1", tokens{1}); {
		case isA[*store.DeniedError](err):
		case err != nil:
			s.t.Fatal(err)
		default:
			if is := s.holds(); !s.lately(is) {
				wrong = append(
					wrong,
					fmt.Sprintf(
						"after %s, process %d at %d: admitted by a bucket of %d, in force were %v",
						what,
						i,
						s.clock.Since.Load(),
						is,
						s.was[max(0, len(s.was)-4):],
					),
				)
			}
		}
	}
	// Once nothing has changed for a window, everybody goes by what is stored.
	s.sync.alive(s.epoch)
	s.note()
	s.passes(window + 2*mostSkew)
	for i, d := range s.processes {
		if _, err := d.Acquire(s.t.Context(), "1", tokens{1}); err != nil && !isA[*store.DeniedError](err) {
			s.t.Fatal(err)
		}
		if is, want := s.holds(), s.stored(s.clock.Since.Load()); is != want {
			wrong = append(wrong, fmt.Sprintf("in the end, process %d leaves a bucket of %d, want %d", i, is, want))
		}
	}
	for _, d := range s.processes {
		reshapes += d.count("reshape applied")
	}
	return wrong, reshapes
}

// TestQuotaStorm: whatever sync and operators do, each admission is by limits in force within the last
// window. Each bucket ends with the limits that are stored.
func TestQuotaStorm(t *testing.T) {
	seeds, changes, reshapes := longform.Histories[uint64](t, "storms", 40, 6), 0, 0
	for seed := range seeds {
		s := newQuotaStorm(t, seed, func(api wire.API) wire.API { return api })
		wrong, n := s.run(80)
		for _, w := range wrong {
			t.Errorf("seed %d: %s", seed, w)
		}
		if n > len(s.was)+3*len(s.processes) { // a version may rise where the numbers do not change
			t.Errorf("seed %d: %d reshapes for %d changes", seed, n, len(s.was))
		}
		changes, reshapes = changes+len(s.was), reshapes+n
	}
	if reshapes < int(seeds) || changes < 5*int(seeds) {
		t.Errorf("%d reshapes for %d changes: nothing to see", reshapes, changes)
	}
	t.Logf("%d reshapes for %d changes", reshapes, changes)
}

// TestQuotaStormControl: where a quota that comes back does not count in the version, or all regions' limit
// is in force, the storm shows it.
func TestQuotaStormControl(t *testing.T) {
	longform.NoRace(t, "a control, whose broken variant ships nowhere")
	whole := func(store *Store) {
		store.seams.Choose = func(w *plan.Demand, v plan.State, now int64) plan.Plan {
			if w.Shape != nil {
				own := *w.Shape
				own.Limits = own.Ceiling
				w.Shape = &own
			}
			return plan.Choose(w, v, now)
		}
	}
	for name, control := range map[string]struct {
		api  func(wire.API) wire.API
		opts []storeChange
		want string
	}{
		"no version of coming back": {func(api wire.API) wire.API { return evergreen{api} }, nil,
			"in the end, process "},
		"the whole limit": {func(api wire.API) wire.API { return api }, []storeChange{whole},
			"admitted by a bucket of 1000, in force were"},
	} {
		t.Run(name, func(t *testing.T) {
			found := 0
			for seed := uint64(0); seed < 10 && found == 0; seed++ {
				wrong, _ := newQuotaStorm(t, seed, control.api, control.opts...).run(80)
				for _, w := range wrong {
					if strings.Contains(w, control.want) {
						found++
					}
				}
			}
			if found == 0 {
				t.Errorf("no storm shows that it is %s", control.want)
			}
			t.Logf("%d found", found)
		})
	}
}

// evergreen is an API whose heartbeat has always been alive.
type evergreen struct{ wire.API }

func (f evergreen) BatchGetItem(
	ctx context.Context,
	in *dynamodb.BatchGetItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.BatchGetItemOutput, error) {
	out, err := f.API.BatchGetItem(ctx, in, opts...)
	if err != nil {
		return nil, err
	}
	for _, items := range out.Responses {
		for _, raw := range items {
			if item.KeyOf(raw) == item.Heartbeat {
				raw["since"] = codec.N(1)
			}
		}
	}
	return out, nil
}
