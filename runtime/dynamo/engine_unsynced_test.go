package dynamo

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestUnsynced: without any heartbeat, global limits are the floor. Check fails, the first call logs a WARN,
// and each denial by the floor says so, from the cache too. None of these happens in the controls.
func TestUnsynced(t *testing.T) {
	const (
		what = "no regional sync has ever run on this table, so this region has no more than the floor of limits " +
			"that are `global: true`"
		cure    = "run `sluice region sync`, one process in each region"
		warning = `level=WARN msg="sluice: ` + what + ": " + cure +
			`" table=TABLE resource=embeddings floor_percent=5` + "\n"
	)
	begun := func(s sync1, _ manager) { // nothing is published yet
		if err := s.PutHeartbeat(s.t.Context(), store.Heartbeat{Epoch: 1, Expires: t0}); err != nil {
			s.t.Fatal(err)
		}
	}
	plainLimits := func(t testing.TB) *variant {
		t.Helper()
		_, embeddings := generated(t)
		return withNumbers(embeddings, 1, daily)
	}
	nothing := func(sync1, manager) {}
	for name, test := range map[string]struct {
		def      func(testing.TB) *variant
		set      func(sync1, manager)
		admitted int
		loud     bool // Check and the log report it
		unsynced bool // so do denials of user-1
	}{
		"nothing is stored": {global, nothing, 50, true, true},
		"a quota without heartbeat": {
			global, func(s sync1, _ manager) { s.gives(3, "user-1", 300) }, 50, true, true,
		},
		"an operator's override for the entity": {
			global, func(s sync1, o manager) { o.set(s.t, "user-1", per(8)) }, 8, true, false,
		},
		"control: an epoch has begun":     {global, begun, 50, false, false},
		"control: the heartbeat is alive": {global, func(s sync1, _ manager) { s.alive(3) }, 50, false, false},
		"control: the heartbeat has expired": {global, func(s sync1, _ manager) {
			s.alive(3)
			s.e.clock.set(3 * window)
		}, 50, false, false},
		"control: no regions": {plainLimits, nothing, 1000, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			def := test.def(t)
			e := &engine{ttl: 24 * time.Hour}
			e.client = storetest.Dated(dynamotest.Client(t), &e.clock)
			e.table = ttlOn(t, e.client, func(in *dynamodb.CreateTableInput) { in.StreamSpecification = nil })
			test.set(e.sync(t, def), e.manager(def, 0))
			var logged bytes.Buffer
			l, resources := storetest.Open[user](t, newStore(e.client, e.table),
				append(e.options(&events{}), runtime.WithLogger(untimed(&logged))), def)
			d := &desk{Limiter: l, Resource: resources[0]}

			report, line := "", ""
			if test.loud {
				report, line = "setup: table TABLE: "+what+" | "+cure, warning
			}
			if got := strings.ReplaceAll(errtext.Of(d.Check(t.Context())), e.table, "TABLE"); got != report {
				t.Errorf("Check returns\n%s\nwant\n%s", got, report)
			}
			if n := drainOf(t, d, "1"); n != test.admitted {
				t.Errorf("%d admitted, want %d", n, test.admitted)
			}
			denied := func(_ any, err error) {
				t.Helper()
				if got, ok := errors.AsType[*store.DeniedError](err); !ok || got.Unsynced != test.unsynced {
					t.Errorf("%v, want a denial with Unsynced = %v", err, test.unsynced)
				}
			}
			denied(d.Acquire(t.Context(), user("1"), tokens{1})) // by the cache
			e.clock.set(e.clock.Since.Load() + 2000)
			denied(d.Acquire(t.Context(), user("1"), tokens{1})) // by a read
			denied(d.Wait(t.Context(), user("1"), tokens{1}, runtime.MaxWait(time.Second)))
			if n := drainOf(t, d, "2"); n < 50 { // at the floor, too
				t.Errorf("%d admitted for another entity, want 50 at least", n)
			}
			if got := strings.ReplaceAll(logged.String(), e.table, "TABLE"); got != line {
				t.Errorf("logged\n%s\nwant\n%s", got, line)
			}
		})
	}
}
