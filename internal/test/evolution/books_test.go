package evolution_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// schemas are the limits of each revision, by kind and name.
func schemas() map[int64]map[string]map[string]bucket.Limit {
	const day = 24 * time.Hour
	user := map[string]bucket.Limit{"rpm": bucket.Per(60, time.Minute),
		"tpm": bucket.Per(6000, time.Minute).WithBurst(9000)}
	project := map[string]bucket.Limit{"rpm": bucket.Per(600, time.Minute),
		"tpm": bucket.Per(60_000, time.Minute)}
	with := func(of map[string]bucket.Limit, name string, l bucket.Limit) map[string]bucket.Limit {
		of = maps.Clone(of)
		if of[name] = l; l == (bucket.Limit{}) {
			delete(of, name)
		}
		return of
	}
	user2 := with(with(user, "tpm", bucket.Per(12_000, time.Minute)), "tpd", bucket.Per(100_000, day))
	project2 := with(project, "tpd", bucket.Per(700_000, day))
	return map[int64]map[string]map[string]bucket.Limit{
		1: {"user": user, "project": project},
		2: {"user": user2, "project": project2},
		3: {"user": with(user2, "rpm", bucket.Limit{}), "project": with(project2, "rpm", bucket.Limit{})},
		4: {"user": with(user2, "rpm", bucket.Per(30, time.Minute)),
			"project": with(project2, "rpm", bucket.Per(300, time.Minute))},
	}
}

// books are ideal buckets, by entity. Every write is booked, and each bucket of the table has to be as they
// say.
type books struct {
	*world
	schemas  map[int64]map[string]map[string]bucket.Limit
	buckets  map[string]*ideal
	reshapes map[string]int // of each bucket since it was created
}

// ideal is a bucket without rounding, races or guards: what its limits have at an instant, in millitokens.
type ideal struct {
	revision int64
	at       int64
	limits   map[string]bucket.Limit
	tokens   map[string]int64
	lives    map[string]int64 // since when each limit is there, ms
	ttl      int64            // what the table says, s
}

func newBooks(w *world) *books {
	return &books{w, schemas(), map[string]*ideal{}, map[string]int{}}
}

// of returns the limits that a version gives an entity.
func (b *books) of(version int64, entity string) map[string]bucket.Limit {
	kind, _, _ := strings.Cut(entity, "-")
	return b.schemas[version][kind]
}

// advance refills x up to now.
func (x *ideal) advance(now int64) {
	for name, l := range x.limits {
		x.tokens[name] = min(x.tokens[name]+bucket.Refill(l, x.at, now), l.Burst)
	}
	x.at = now
}

// reshape gives x other limits: an added one is full, a removed one is gone, and of the others nothing is
// above the new burst.
func (x *ideal) reshape(revision int64, limits map[string]bucket.Limit) {
	tokens, lives := map[string]int64{}, map[string]int64{}
	for name, l := range limits {
		tokens[name], lives[name] = l.Burst, x.at
		if _, had := x.limits[name]; had {
			tokens[name], lives[name] = min(x.tokens[name], l.Burst), x.lives[name]
		}
	}
	x.revision, x.limits, x.tokens, x.lives = revision, limits, tokens, lives
}

// bucket returns entity's bucket as of now, as it will be for an acquire by that version: as it is, or as
// that reshapes it.
func (b *books) bucket(version int64, entity string) *ideal {
	now := b.now.Load()
	x := b.buckets[entity]
	if x == nil {
		x = &ideal{at: now}
		x.reshape(version, b.of(version, entity))
		return x
	}
	x.advance(now)
	if version <= x.revision {
		return x
	}
	next := new(*x)
	next.reshape(version, b.of(version, entity))
	return next
}

// admits reports whether all buckets have what an acquire by that version takes of the limits that they have.
func (b *books) admits(version int64, c cost, entities ...string) bool {
	for _, entity := range entities {
		x := b.bucket(version, entity)
		for name, n := range c.millitokens(b.of(version, entity)) {
			if _, has := x.limits[name]; has && n > 0 && x.tokens[name] < n {
				return false
			}
		}
	}
	return true
}

// millitokens returns what c takes of each of these limits.
func (c cost) millitokens(of map[string]bucket.Limit) map[string]int64 {
	all := map[string]int64{"rpm": c.rpm * bucket.Milli, "tpm": c.tpm * bucket.Milli,
		"tpd": c.tpd * bucket.Milli}
	maps.DeleteFunc(all, func(name string, _ int64) bool { _, has := of[name]; return !has })
	return all
}

// book enters what a write by that version took of an entity's bucket; a negative amount is given back. An
// acquire gives the bucket that version's shape, if that is newer; nothing else does. It returns since when
// each charged limit exists.
func (b *books) book(
	version int64, entity string, acquire bool, take map[string]int64,
) (charged map[string]int64) {
	x := b.buckets[entity]
	if acquire || x == nil {
		next := b.bucket(version, entity)
		if x != nil && next.revision != x.revision {
			b.reshapes[entity]++
		}
		x = next
		b.buckets[entity] = x
	}
	x.advance(b.now.Load())
	charged = map[string]int64{}
	for name, n := range take {
		if _, has := x.limits[name]; has {
			x.tokens[name] = min(x.tokens[name]-n, x.limits[name].Burst)
			charged[name] = x.lives[name]
		}
	}
	return charged
}

// wrong says how the buckets in the table differ from the ideal ones: a limit that is there or not, its
// numbers, or its level. After a lost race, processes leave some of a full bucket's refill unclaimed. With
// contended, the books accept that.
func (b *books) wrong(t testing.TB, contended bool) string {
	t.Helper()
	now := b.now.Load()
	for _, entity := range slices.Sorted(maps.Keys(b.buckets)) {
		s, x := b.state(t, entity), b.buckets[entity]
		x.advance(now)
		x.ttl = s.ttl
		if s.revision != x.revision {
			return fmt.Sprintf("%s has revision %d, want %d", entity, s.revision, x.revision)
		}
		if got, want := slices.Sorted(maps.Keys(s.balances)), slices.Sorted(maps.Keys(x.limits)); !slices.Equal(got,
			want) {
			return fmt.Sprintf("%s has the limits %v, want %v", entity, got, want)
		}
		for name, l := range x.limits {
			if got := s.balances[name].Limit; got != l {
				return fmt.Sprintf("%s, %s has the numbers %+v, want %+v", entity, name, got, l)
			}
			got := b.level(s, name)
			if left := x.tokens[name] - got; contended && left > 0 &&
				left <= min(bucket.Refill(l, 0, 50), l.Burst/20) {
				x.tokens[name] = got
			}
			if got != x.tokens[name] {
				return fmt.Sprintf("%s, %s has %d, want %d", entity, name, got, x.tokens[name])
			}
		}
	}
	return ""
}
