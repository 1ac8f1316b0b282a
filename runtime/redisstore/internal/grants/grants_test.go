package grants_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/grants"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// spec is a resource with a prepaid limit, one that holds with windows, and one that refills.
func spec() *store.Spec {
	never := time.Duration(bucket.Never.Nominal()) * time.Millisecond
	return &store.Spec{
		Resource: "api", Limits: []string{"credits", "day", "rpm"}, Held: []bool{false, true, false},
		Kinds: []store.Kind{{
			Name: "org", Prefix: "org-", Parent: store.NoParent, PerCall: make([]int64, 3),
			Limits: []bucket.Limit{
				bucket.InWindows(0, never), bucket.InWindows(10, 24*time.Hour), bucket.Per(60, time.Minute),
			},
			Windows: []*bucket.Calendar{{Unit: bucket.Never}, {Unit: bucket.Day}, nil},
		}},
	}
}

// now is 2027-01-15, 08:00 UTC.
var now = time.UnixMilli(1_800_000_000_000).UTC()

// open returns an empty Redis at now, and a function that adds a grant.
func open(t *testing.T) (*miniredis.Miniredis, func(id string, credits, day int64) error) {
	t.Helper()
	server := miniredis.RunT(t)
	server.SetTime(now)
	db := &database.DB{
		Client: redis.NewClient(&redis.Options{Addr: server.Addr()}),
		Keys:   database.Keys{Prefix: "sluice:", HashTags: true},
	}
	t.Cleanup(func() { _ = db.Client.Close() })
	s := spec()
	return server, func(id string, credits, day int64) error {
		return grants.Add(t.Context(), db, s, &store.Grant{
			ID: id, Entity: "org-1", Root: "org-1", Amounts: []int64{credits, day, 0}, Windows: s.Kinds[0].Windows,
		})
	}
}

// TestAdd: used goes below 0, down to what was granted, while its window lasts. The text of the grant is kept
// for 400 days, in the slot of the bucket.
func TestAdd(t *testing.T) {
	server, grant := open(t)
	for range 2 {
		if err := grant("inv-7", 5000, 2000); err != nil {
			t.Fatal(err)
		}
	}
	const once, credits, day = "sluice:#grant:api:{org-1}#org-1#inv-7", "sluice:api:credits:{org-1}#org-1",
		"sluice:api:day:{org-1}#org-1"
	if got, _ := server.Get(once); got != "credits 5000 day 2000" || server.TTL(once) != store.GrantKept {
		t.Errorf("the grant is %q for %v", got, server.TTL(once))
	}
	if text.Tag(once) != text.Tag(credits) {
		t.Errorf("%s and %s are in slots of %s and %s", once, credits, text.Tag(once), text.Tag(credits))
	}
	midnight := now.Truncate(24 * time.Hour).Add(24 * time.Hour).UnixMilli()
	for key, want := range map[string]string{
		credits: fmt.Sprintf("-5000 %d 5000 - -", int64(bucket.NeverEnds)),
		day:     fmt.Sprintf("-2000 %d 2000 0 %d", midnight, bucket.Epoch(now.UnixMilli())),
	} {
		got := server.HGet(key, "used") + " " + server.HGet(key, "end") + " " + server.HGet(key, "granted")
		for _, field := range []string{"h0", "e"} {
			if value := server.HGet(key, field); value != "" {
				got += " " + value
			} else {
				got += " -"
			}
		}
		if got != want {
			t.Errorf("%s has %s, want %s", key, got, want)
		}
	}
	if err := grant("inv-8", 1000, 0); err != nil || server.HGet(credits, "used") != "-6000" {
		t.Errorf("a second grant: %v, used %s", err, server.HGet(credits, "used"))
	}
}

// TestRefused: another amount for an id, and a sum that floats do not hold, add nothing.
func TestRefused(t *testing.T) {
	server, grant := open(t)
	if err := grant("a", 5000, 0); err != nil {
		t.Fatal(err)
	}
	for what, err := range map[string]error{
		"more":          grant("a", 5001, 0),
		"another limit": grant("a", 5000, 1),
		"not exact":     grant("b", 1<<53, 0),
		"both":          grant("c", 1000, 1<<53),
	} {
		if _, ok := errors.AsType[*store.InvalidError](err); !ok {
			t.Errorf("%s: %v, want an *InvalidError", what, err)
		}
	}
	const key = "sluice:api:credits:{org-1}#org-1"
	if got := server.HGet(key, "used"); got != "-5000" || server.Exists("sluice:api:day:{org-1}#org-1") {
		t.Errorf("used is %s, and the other limit is there: %t", got, server.Exists("sluice:api:day:{org-1}#org-1"))
	}
}

// TestKept: an id counts again once it is forgotten. Control: a day before, it does not.
func TestKept(t *testing.T) {
	const key = "sluice:api:credits:{org-1}#org-1"
	for days, want := range map[int]string{399: "-5000", 400: "-10000"} {
		server, grant := open(t)
		if err := grant("a", 5000, 0); err != nil {
			t.Fatal(err)
		}
		after := time.Duration(days) * 24 * time.Hour
		server.FastForward(after)
		server.SetTime(now.Add(after))
		if err := grant("a", 5000, 0); err != nil || server.HGet(key, "used") != want {
			t.Errorf("after %d days: %v, used %s, want %s", days, err, server.HGet(key, "used"), want)
		}
	}
}
