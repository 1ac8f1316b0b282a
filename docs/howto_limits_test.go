package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/time/rate"

	api "github.com/sluice-go/sluice/examples/publicapi/limits"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// plan is quoted in docs/how-to/per-customer.md.
func plan(ctx context.Context, lim *api.Limiter, customer string, perSecond int64) error {
	override := lim.Config.API.Entity(api.Key{ID: customer})
	_, revision, err := override.Get(ctx)
	if err != nil {
		return err
	}
	bought := api.APILimits{RPS: &runtime.Rate{Capacity: perSecond, Burst: 2 * perSecond}} // Day stays
	_, err = override.Set(ctx, bought, revision, runtime.Refill())
	return err
}

// TestPlan: the override is in force at once in the process that sets it.
func TestPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := api.New(limittest.Store(t))
		if err == nil {
			err = plan(t.Context(), lim, "acme", 500)
		}
		if err == nil {
			_, err = lim.API.Acquire(t.Context(), api.Key{ID: "acme"}, api.APICost{RPS: 1_000})
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// spend is quoted in docs/how-to/daily-limits.md.
func spend(ctx context.Context, lim *api.Limiter, key api.Key) (total int64) {
	for hour := range 25 {
		snap, err := lim.API.Peek(ctx, key)
		if err != nil {
			log.Fatal(err)
		}
		all := snap.Available.Day
		if _, err := lim.API.Acquire(ctx, key, api.APICost{RPS: 1, Day: all}); err != nil {
			log.Fatal(err)
		}
		total += all
		if hour < 24 {
			time.Sleep(time.Hour)
		}
	}
	return total
}

// TestSpend: docs/how-to/daily-limits.md says what a full bucket admits within 24 hours.
func TestSpend(t *testing.T) {
	page := read(t, "docs/how-to/daily-limits.md")
	for row, day := range map[string]runtime.Rate{
		"| `capacity: 100_000` | 100,000 | 200,000 |":               {Capacity: 100_000},
		"| `capacity: 50_000` | 50,000 | 100,000 |":                 {Capacity: 50_000},
		"| `capacity: 10_000, refill: 90_000` | 90,000 | 100,000 |": {Capacity: 10_000, Refill: 90_000},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim, err := api.New(limittest.Store(t))
			key := api.Key{ID: "acme"}
			if err == nil {
				_, err = lim.Config.API.Entity(key).Set(t.Context(), api.APILimits{Day: &day}, "")
			}
			if err != nil {
				t.Fatal(err)
			}
			total := fmt.Sprint(spend(t.Context(), lim, key))
			if !strings.HasSuffix(strings.ReplaceAll(row, ",", ""), " "+total+" |") || !strings.Contains(page, row) {
				t.Errorf("%+v admits %s; the page has %q: %t", day, total, row, strings.Contains(page, row))
			}
		})
	}
}

// long is quoted in docs/how-to/unknown-cost.md.
func long(ctx context.Context, gpt4 limits.GPT4Acquirer, user limits.User, pages []int64) error {
	lease, err := gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1_000})
	if err != nil {
		return err
	}
	defer lease.Release(ctx) // gives all back, unless the lease was settled
	var used int64
	for _, page := range pages {
		if used+page > lease.Cost().TPM { // the reservation is too small
			more := max(1_000, used+page-lease.Cost().TPM)
			if err := lease.More(ctx, limits.GPT4Cost{TPM: more}); err != nil {
				return errors.Join(err, lease.Settle(ctx, limits.GPT4Cost{TPM: used}))
			}
		}
		used += page
	}
	return lease.Settle(ctx, limits.GPT4Cost{TPM: used})
}

// after is quoted in docs/how-to/unknown-cost.md.
func after(ctx context.Context, gpt4 limits.GPT4Acquirer, user limits.User, work func() int64) error {
	lease, err := gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1}) // denied only if nothing is left
	if err != nil {
		return err
	}
	return lease.Settle(ctx, limits.GPT4Cost{TPM: work()}) // into debt, if need be
}

// TestUnknownCost: what is charged in the end is what was used, in each way.
func TestUnknownCost(t *testing.T) {
	for want, call := range map[int64]func(context.Context, *limits.Limiter, limits.User) error{
		2_100: func(ctx context.Context, lim *limits.Limiter, user limits.User) error {
			return long(ctx, lim.GPT4, user, []int64{700, 700, 700})
		},
		20_000: func(ctx context.Context, lim *limits.Limiter, user limits.User) error {
			err := after(ctx, lim.GPT4, user, func() int64 { return 20_000 })
			_, denied := errors.AsType[*limits.DeniedError](after(ctx, lim.GPT4, user, nil))
			if !denied {
				err = errors.Join(err, errors.New("a user in debt is admitted"))
			}
			return err
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			lim, err := limits.New(limittest.Store(t))
			user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
			if err == nil {
				err = call(t.Context(), lim, user)
			}
			snap, failed := lim.GPT4.Peek(t.Context(), user.Project)
			if err = errors.Join(err, failed); err != nil || snap.Available.TPM != 150_000-want {
				t.Errorf("%d: %+v, %v", want, snap, err)
			}
		})
	}
}

// before is quoted in docs/how-to/from-redis-rate.md.
func before(buckets map[string]*rate.Limiter, user string) bool {
	if buckets[user] == nil {
		buckets[user] = rate.NewLimiter(100, 200) // 100 per second, burst 200: in this process
	}
	return buckets[user].Allow()
}

// now is quoted in docs/how-to/from-redis-rate.md.
func now(ctx context.Context, lim api.APIAcquirer, key string) (allowed bool, err error) {
	_, err = lim.Acquire(ctx, api.Key{ID: key}, api.APICost{})
	if denied, ok := errors.AsType[*api.DeniedError](err); ok {
		log.Print("come back after ", denied.RetryAfter)
		return false, nil
	}
	return err == nil, err
}

// TestFromOthers: both admit a first call, and the new one says no by a denial.
func TestFromOthers(t *testing.T) {
	fake := limittest.NewFake((*api.APIResource)(nil))
	for _, want := range []bool{true, false} {
		if got, err := now(t.Context(), fake, "acme"); got != want || err != nil {
			t.Error(got, err)
		}
		if !before(map[string]*rate.Limiter{}, "acme") {
			t.Error("the limiter of before denies a first call")
		}
		fake.Deny(api.APIRPS, time.Second)
	}
}

// apart is quoted in docs/how-to/several-services.md.
func apart(client dynamo.API) (chat *limits.Limiter, public *api.Limiter, err error) {
	if chat, err = limits.New(dynamo.New(client, "rate_limits", dynamo.Namespace("chat"))); err != nil {
		return nil, nil, err
	}
	public, err = api.New(dynamo.New(client, "rate_limits", dynamo.Namespace("public-api")))
	return chat, public, err
}

// TestApart: two services with a namespace each pass Check on one table.
func TestApart(t *testing.T) {
	engine := memdynamo.New()
	limittest.StoreOn(t, engine) // creates the table
	chat, public, err := apart(engine.Client())
	if err == nil {
		err = errors.Join(chat.Check(t.Context()), public.Check(t.Context()))
	}
	if err != nil {
		t.Error(err)
	}
}

// greet is what docs/how-to/testing.md tests.
func greet(ctx context.Context, gpt4 limits.GPT4Acquirer, user limits.User) string {
	if _, err := gpt4.Acquire(ctx, user, limits.GPT4Cost{TPM: 10}); err != nil {
		return "later"
	}
	return "hello"
}

// TestGreet is quoted in docs/how-to/testing.md.
func TestGreet(t *testing.T) {
	fake := limittest.NewFake((*limits.GPT4Resource)(nil)) // admits everything, and records
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	if got := greet(t.Context(), fake, user); got != "hello" {
		t.Error(got)
	}
	fake.Deny(limits.GPT4TPM, time.Second)
	if got := greet(t.Context(), fake, user); got != "later" {
		t.Error(got)
	}
	if calls := fake.Calls(); len(calls) != 2 || calls[0].Cost.TPM != 10 {
		t.Errorf("%+v", calls)
	}
}
