package evolution_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// deployment is a random history of processes of several versions on one table. One write follows the other:
// the simulation in runtime/dynamo has them at once.
type deployment struct {
	*books
	rng       *rand.Rand
	processes map[int64][]*process // by version
	open      []held
	changed   int64 // when anything was written last, ms
	creates   int
	admitted  int
	denied    int
}

// held is a lease that is still to be closed.
type held struct {
	*lease
	version  int64
	cost     cost
	entities []string
	charged  []map[string]int64 // the limits of each entity that were, since when they are there
}

func deploy(t *testing.T, w *world, seed uint64) *deployment {
	t.Helper()
	d := &deployment{books: newBooks(w), rng: rand.New(rand.NewPCG(seed, 1)), processes: map[int64][]*process{}}
	for version := int64(1); version <= 3; version++ {
		for range 2 {
			d.processes[version] = append(d.processes[version], w.deploy(t, int(version)))
		}
	}
	return d
}

// play has processes of each stage's versions at work, step by step, and says what is wrong after the first
// step after which something is.
func (d *deployment) play(t *testing.T, stages [][]int64) string {
	t.Helper()
	const steps = 40
	for at, versions := range stages {
		for step := range steps {
			what := d.step(t, versions[d.rng.IntN(len(versions))])
			wrong := d.wrong(t, d.contended())
			for entity, n := range d.reshapes {
				if highest := slices.Max(slices.Concat(stages...)); n >= int(highest) && wrong == "" {
					wrong = fmt.Sprintf("%s was reshaped %d times, up to revision %d", entity, n, highest)
				}
			}
			if wrong != "" {
				return fmt.Sprintf("stage %d, step %d: %s: %s", at, step, what, wrong)
			}
		}
	}
	return ""
}

// contended reports whether some process may still count as contended.
func (d *deployment) contended() bool {
	for _, all := range d.processes {
		for _, p := range all {
			if d.now.Load()-p.contended.Load() <= 1000 {
				return true
			}
		}
	}
	return false
}

// step lets time pass and then has one thing happen. It says what.
func (d *deployment) step(t *testing.T, version int64) string {
	t.Helper()
	switch d.rng.IntN(20) {
	case 0, 1, 2, 3, 4, 5, 6: // at the same instant as the one before
	case 7: // long enough for a bucket to expire
		d.later(time.Duration(d.rng.Int64N(int64(3 * 24 * time.Hour))))
	default: // images of before refuse no longer
		d.later(1001*time.Millisecond + time.Duration(d.rng.Int64N(int64(12*time.Second))))
	}
	d.expire(t)
	if len(d.open) > 0 && d.rng.IntN(3) == 0 {
		return d.close(t)
	}
	return d.acquire(t, version)
}

// expire deletes what DynamoDB might have deleted by now. Such a bucket was full.
func (d *deployment) expire(t *testing.T) {
	t.Helper()
	for entity, x := range d.buckets {
		if 1000*x.ttl >= d.now.Load() || d.rng.IntN(3) == 0 { // not at once
			continue
		}
		x.advance(d.now.Load())
		for name, l := range x.limits {
			if x.tokens[name] != l.Burst {
				t.Errorf("%s expires with %d of %s, of %d", entity, x.tokens[name], name, l.Burst)
			}
		}
		if _, err := d.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &d.table, Key: key(entity),
		}); err != nil {
			t.Fatal(err)
		}
		delete(d.buckets, entity)
		delete(d.reshapes, entity)
	}
}

func (d *deployment) acquire(t *testing.T, version int64) string {
	t.Helper()
	c := cost{rpm: d.rng.Int64N(40), tpm: 1 + d.rng.Int64N(4000), tpd: d.rng.Int64N(3) * d.rng.Int64N(15_000)}
	user := fmt.Sprint("u", d.rng.IntN(2))
	entities := []string{"user-" + user, "project-p"}
	admits, settled := d.admits(version, c, entities...), d.now.Load()-d.changed > 1000
	l, err := d.processes[version][d.rng.IntN(2)].acquire(t.Context(), user, c)
	what := fmt.Sprintf("version %d acquires %+v for %s", version, c, user)
	if denied(t, err) {
		d.denied++
		if admits && settled {
			t.Errorf("%s: denied, but the tokens were there: %v", what, err)
		}
		for _, entity := range entities { // a bucket may be given its shape all the same
			if x := d.buckets[entity]; x != nil && d.state(t, entity).revision != x.revision {
				d.book(version, entity, true, nil)
				d.changed = d.now.Load()
			}
		}
		return what + ", denied"
	}
	if !admits {
		t.Errorf("%s: admitted, but tokens were missing", what)
	}
	d.admitted++
	d.changed = d.now.Load()
	one := held{lease: l, version: version, cost: c, entities: entities}
	for _, entity := range entities {
		if d.buckets[entity] == nil {
			d.creates++
		}
		one.charged = append(one.charged, d.book(version, entity, true, c.millitokens(d.of(version, entity))))
	}
	d.open = append(d.open, one)
	return what
}

// close settles or releases a lease that some process holds, however old that is.
func (d *deployment) close(t *testing.T) string {
	t.Helper()
	n := d.rng.IntN(len(d.open))
	one := d.open[n]
	d.open = slices.Delete(d.open, n, n+1)
	if d.rng.IntN(2) == 0 { // it stands as charged
		return "nothing"
	}
	actual, what := cost{}, fmt.Sprintf("version %d releases %+v", one.version, one.cost)
	if d.rng.IntN(2) == 0 {
		actual = cost{rpm: d.rng.Int64N(25), tpm: d.rng.Int64N(6000), tpd: d.rng.Int64N(40_000)}
		what = fmt.Sprintf("version %d settles %+v as %+v", one.version, one.cost, actual)
		if err := one.settle(actual); err != nil {
			t.Fatal(err)
		}
	} else {
		one.release()
	}
	for i, entity := range one.entities {
		take, gives := actual.millitokens(d.of(one.version, entity)), true
		for name, n := range one.cost.millitokens(d.of(one.version, entity)) {
			take[name] -= n
			if since, charged := one.charged[i][name]; !charged || d.skippedSettle(t, entity, name, since) {
				delete(take, name)
			}
			gives = gives && take[name] <= 0
		}
		if d.buckets[entity] != nil || !gives { // what is given back to a full bucket is there already
			d.book(one.version, entity, false, take)
		}
	}
	d.changed = d.now.Load()
	return what
}

// skippedSettle reports that a lease's process settled nothing of a limit that was removed since it was
// charged, and that an older version has added again. A process that saw the removal may not know of the
// return.
func (d *deployment) skippedSettle(t *testing.T, entity, name string, since int64) bool {
	t.Helper()
	x := d.buckets[entity]
	if x == nil || x.lives[name] == since {
		return false
	}
	x.advance(d.now.Load())
	return d.level(d.state(t, entity), name) == x.tokens[name]
}

// rollings are deployments by the versions of each of their stages.
func rollings() map[string][][]int64 {
	return map[string][][]int64{
		"one by one":           {{1}, {1, 2}, {2}, {2, 3}, {3}},
		"rolled back":          {{1}, {1, 2}, {2}, {1, 2}, {1}},
		"past the second":      {{1}, {1, 3}, {3}},
		"rolled back by two":   {{1}, {1, 2, 3}, {3}, {1, 3}, {1}},
		"back and forth again": {{1}, {1, 2}, {1}, {1, 2}, {2, 3}, {2}, {3}},
	}
}

// TestRolling: after each write of any version every bucket has, to the millitoken, the balance of an ideal
// one. It has the limits and numbers of the highest revision that has charged it, given once. Each denied
// request exceeds the ideal balance.
func TestRolling(t *testing.T) {
	seeds := uint64(1)
	if !dynamotest.OnLocal(t) {
		seeds = longform.Count[uint64](t, "histories of each deployment", 4, 1)
	}
	for name, stages := range rollings() {
		t.Run(name, func(t *testing.T) {
			admitted, denied, creates, generic := 0, 0, 0, int64(0)
			for seed := range seeds {
				d := deploy(t, newWorld(t), seed)
				if wrong := d.play(t, stages); wrong != "" {
					t.Fatalf("seed %d: %s", seed, wrong)
				}
				admitted, denied, creates = admitted+d.admitted, denied+d.denied, creates+d.creates
				for _, all := range d.processes {
					for _, p := range all {
						generic += p.generic.Load()
					}
				}
			}
			if admitted == 0 || denied == 0 || generic == 0 {
				t.Errorf("%d admitted, %d denied, %d writes by the generic path: want some of each", admitted, denied,
					generic)
			}
			t.Logf("%d admitted, %d denied, %d buckets created, %d writes by the generic path", admitted, denied,
				creates, generic)
		})
	}
}

// TestRollingSees: what is off by little, or for a while, shows.
func TestRollingSees(t *testing.T) {
	for name, fault := range map[string]struct {
		want string // of what is said of it
		edit func(update, condition string) (string, string)
	}{
		"the removed limit stays": {" has the limits [rpm ", func(update, condition string) (string, string) {
			update, _, _ = strings.Cut(update, "REMOVE")
			return update, condition
		}},
		"a shape that is claimed only": {"tpm has the numbers ", func(update, condition string) (string, string) {
			return strings.Replace(update, "b_tpm_bx = :tpm_bx", "b_tpm_bx = if_not_exists(b_tpm_bx, :tpm_bx)", 1),
				condition
		}},
		"an added limit starts with nothing": {"tpd has 0, ", func(update, condition string) (string, string) {
			return strings.Replace(update, "if_not_exists(b_tpd_tk, :tpd_bx)", "if_not_exists(b_tpd_tk, :tpd_use)", 1),
				condition
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.wrap = func(api dynamo.API) dynamo.API { return &edited{api, fault.edit} }
			wrong := deploy(t, w, 1).play(t, rollings()["one by one"])
			if !strings.Contains(wrong, fault.want) {
				t.Errorf("said %q, want %q", wrong, fault.want)
			}
		})
	}
}
