// Package grants adds grants to buckets in Redis: by one script, once for each id.
package grants

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
	"github.com/sluice-go/sluice/runtime/store"
)

// grantScript adds to limits of a bucket.
//
//go:embed grant.lua
var grantScript string

// attempts is how often Add computes boundaries by the time that Redis says.
const attempts = 3

// errMisdated is the cause if the clock of Redis moves too fast for that.
var errMisdated = errors.New("the clock of Redis differs from one call to the next")

// Add adds g to its bucket. A call that is repeated, by the client too, counts once. It fails as store.Grant
// says, and with the database's error.
func Add(ctx context.Context, db *database.DB, spec *store.Spec, g *store.Grant) error {
	clock, err := db.Client.Time(ctx).Result()
	if err != nil {
		return db.OperationError(ctx, err)
	}
	now := clock.UnixMilli()
	keys, limits := keysOf(db, spec, g)
	for range attempts {
		reply, err := redis.NewScript(grantScript).Run(ctx, db.Client, keys, args(spec, g, limits, now)...).Result()
		if err != nil {
			return db.OperationError(ctx, database.OnKey(keys[1], err))
		}
		switch got := reply.(type) {
		case string:
			return g.Repeated(spec, amounts(spec, got))
		case int64:
			if at := got - 2; at < int64(len(limits)) {
				return g.TooMuch(spec, limits[at])
			}
			now = got
		}
	}
	return db.OperationError(ctx, errMisdated)
}

// keysOf returns the keys of g, and the limits whose hashes follow the first one.
func keysOf(db *database.DB, spec *store.Spec, g *store.Grant) (keys []string, limits []int) {
	keys = []string{db.Keys.Grant(spec.ResourceOf(g.Kind), g.Root, g.Entity, g.ID)}
	for i, n := range g.Amounts {
		if n > 0 {
			keys = append(keys, db.Keys.Bucket(spec.ResourceOf(g.Kind), spec.Limits[i], g.Root, g.Entity))
			limits = append(limits, i)
		}
	}
	return keys, limits
}

// args returns the arguments of the script at now, in ms.
func args(spec *store.Spec, g *store.Grant, limits []int, now int64) []any {
	all := []any{written(spec, g), int64(store.GrantKept / time.Second)}
	for _, i := range limits {
		held := 0
		if window.Held(spec.Held, i) {
			held = 1
		}
		all = append(all, g.Amounts[i], held)
		numbers := inforce.Numbers{Limits: spec.Kinds[g.Kind].Limits}
		opens := window.Of(numbers, []int{i}, spec.Held, g.Windows, now).List
		all = append(all, opens[2:]...) // without the burst and what kind of limit it is
	}
	return all
}

// written returns the amounts of g as text.
func written(spec *store.Spec, g *store.Grant) string {
	var all []string
	for i, n := range g.Amounts {
		if n > 0 {
			all = append(all, fmt.Sprint(spec.Limits[i], " ", n))
		}
	}
	return strings.Join(all, " ")
}

// amounts reads what written has written, by limit. A number that is none counts as -1, which no grant has.
func amounts(spec *store.Spec, written string) []int64 {
	all, words := make([]int64, len(spec.Limits)), strings.Fields(written)
	for at := 0; at+1 < len(words); at += 2 {
		for i, name := range spec.Limits {
			if words[at] != name {
				continue
			}
			n, err := strconv.ParseInt(words[at+1], 10, 64)
			if all[i] = n; err != nil {
				all[i] = -1
			}
		}
	}
	return all
}
