package prefetch_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"

	"github.com/sluice-go/sluice/internal/test/conformance/named"
	"github.com/sluice-go/sluice/internal/test/simulated"
	"github.com/sluice-go/sluice/internal/test/storetest"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// spied is a store that shows the session of its Limiter.
type spied struct {
	store.Store
	session store.Session
	spec    *store.Spec // of voice
}

// Open implements store.Store.
func (s *spied) Open(env *store.Env, defs ...store.Definition) (store.Session, error) {
	for _, def := range defs {
		if def.Spec().Resource == named.Voice {
			s.spec = def.Spec()
		}
	}
	var err error
	s.session, err = s.Store.Open(env, defs...)
	return s.session, err
}

// charged returns what was charged of a limit, in whole tokens, in the bucket of key-1 of a resource.
func charged(t *testing.T, engine *memdynamo.Engine, resource, limit string) (n int64) {
	t.Helper()
	key := storetest.BucketKey("key-1", resource)
	item := storetest.Table{Client: engine.Client(), Name: table}.Get(t, key)
	if err := attributevalue.Unmarshal(item["b_"+limit+"_tc"], &n); err != nil {
		t.Fatal(err)
	}
	return n / 1000
}

// TestTemplate has a key that calls on two names of a template, with a limit by name and one of all names.
// Most calls make no request, and each bucket has exactly what its calls cost.
func TestTemplate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		client, sent := counted(engine)
		spy := &spied{Store: dynamo.New(client, table)}
		lim, err := named.New(spy, runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Deny)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, key := t.Context(), named.Key{ID: "1"}
		for _, name := range []string{"alto", "bass"} {
			if _, err := spy.session.Catalog().Set(ctx, spy.spec, store.Entry{Name: name}); err != nil {
				t.Fatal(err)
			}
			rpm := named.VoiceLimits{RPM: &runtime.Rate{Capacity: 100_000}}
			if _, err := lim.Config.Voice.Named(name).Entity(key).Set(ctx, rpm, ""); err != nil {
				t.Fatal(err)
			}
		}
		day := int64(100_000)
		if _, err := lim.Config.Voice.Entity(key).Set(ctx, named.VoiceLimits{Day: &day}, ""); err != nil {
			t.Fatal(err)
		}
		calls := func() {
			for i := range 200 {
				voice, err := lim.Voice.Named(ctx, [...]string{"alto", "bass"}[i%2])
				if err != nil {
					t.Fatal(err)
				}
				lease, err := voice.Acquire(ctx, key, named.VoiceCost{RPM: 2, Day: 3}, runtime.Prefetch(life))
				if err != nil {
					t.Fatal(err)
				}
				if err := lease.Settle(ctx, named.VoiceCost{RPM: 2, Day: 1}); err != nil {
					t.Fatal(err)
				}
				sleep(2 * time.Millisecond)
				synctest.Wait()
			}
		}
		calls()
		sent.count()
		if calls(); sent.count() > 50 {
			t.Error("400 calls made more than 50 requests")
		}
		if err := lim.Close(context.WithoutCancel(ctx)); err != nil {
			t.Fatal(err)
		}
		for resource, want := range map[string]int64{"voice/alto": 400, "voice/bass": 400} {
			if n := charged(t, engine, resource, "rpm"); n != want {
				t.Errorf("%s: %d charged, want %d", resource, n, want)
			}
		}
		if n := charged(t, engine, "voice", "day"); n != 400 {
			t.Errorf("all names: %d charged, want 400", n)
		}
	})
}

// TestRemovedName has a name of a template that is removed while a process holds blocks of its bucket. The
// bucket has what calls left in the end.
func TestRemovedName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := newEngine(t)
		spy := &spied{Store: dynamo.New(simulated.Client(engine), table)}
		lim, err := named.New(spy, runtime.WithLogger(slog.New(slog.DiscardHandler)),
			runtime.WithCallDefaults(runtime.OnUnavailable(runtime.Deny), runtime.Prefetch(life)))
		if err != nil {
			t.Fatal(err)
		}
		ctx, catalog := t.Context(), spy.session.Catalog()
		revision, err := catalog.Set(ctx, spy.spec, store.Entry{Name: "alto"})
		if err != nil {
			t.Fatal(err)
		}
		key, rate, number := named.Key{ID: "1"}, &runtime.Rate{Capacity: 100_000}, int64(100_000)
		rpm, day := named.VoiceLimits{RPM: rate}, named.VoiceLimits{Day: &number}
		if _, err := lim.Config.Voice.Named("alto").Entity(key).Set(ctx, rpm, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := lim.Config.Voice.Entity(key).Set(ctx, day, ""); err != nil {
			t.Fatal(err)
		}
		voice, err := lim.Voice.Named(ctx, "alto")
		if err != nil {
			t.Fatal(err)
		}
		admitted := int64(0)
		for range 100 {
			if _, err := voice.Acquire(ctx, key, named.VoiceCost{RPM: 1, Day: 1}); err == nil {
				admitted++
			}
			sleep(5 * time.Millisecond)
		}
		before := charged(t, engine, "voice/alto", "rpm")
		if err := catalog.Delete(ctx, spy.spec, "alto", revision); err != nil {
			t.Fatal(err)
		}
		sleep(2 * time.Minute) // caches of the name end
		if _, err := lim.Voice.Named(ctx, "alto"); err == nil {
			t.Error("the name is still there")
		}
		if err := lim.Close(context.WithoutCancel(ctx)); err != nil {
			t.Fatal(err)
		}
		after := charged(t, engine, "voice/alto", "rpm")
		if before <= admitted || after != admitted {
			t.Errorf("%d charged before and %d after the end, of %d admitted", before, after, admitted)
		}
	})
}
