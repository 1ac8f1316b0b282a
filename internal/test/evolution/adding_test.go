package evolution_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// race is on for a table: what its processes charge first, they send only once all of them are about to.
// Reshapes are counted.
type race struct {
	all chan struct{} // closed once they are

	mu       sync.Mutex
	missing  int            // who is not there yet
	reshapes map[string]int // applied, by entity
}

// racer is a process's client.
type racer struct {
	dynamo.API
	*race
	first sync.Once
}

// line waits for the others.
func (r *race) line(ctx context.Context) {
	r.mu.Lock()
	if r.missing--; r.missing == 0 {
		close(r.all)
	}
	r.mu.Unlock()
	select {
	case <-r.all:
	case <-ctx.Done():
	}
}

func (r *race) note(key map[string]types.AttributeValue, update *string) {
	if pk, ok := key["PK"].(*types.AttributeValueMemberS); ok && strings.Contains(*update, "cv = ") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.reshapes[strings.TrimPrefix(pk.Value, "ENTITY#")]++
	}
}

// TransactWriteItems implements dynamo.API.
func (r *racer) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	r.first.Do(func() { r.line(ctx) })
	out, err := r.API.TransactWriteItems(ctx, in, opts...)
	if err != nil {
		return out, err
	}
	for _, item := range in.TransactItems {
		if u := item.Update; u != nil {
			r.note(u.Key, u.UpdateExpression)
		}
	}
	return out, err
}

// crowd has processes of the second version, each with callers of its own, acquire c for user a of project p,
// all at once.
func (w *world) crowd(t *testing.T, c cost) (admitted int64, reshapes map[string]int) {
	t.Helper()
	const processes, callers, calls = 6, 2, 3
	r := &race{all: make(chan struct{}), missing: processes, reshapes: map[string]int{}}
	before := w.wrap
	defer func() { w.wrap = before }()
	w.wrap = func(api dynamo.API) dynamo.API { return &racer{API: before(api), race: r} }
	var running sync.WaitGroup
	var total atomic.Int64
	for range processes {
		p := w.deploy(t, 2)
		for range callers {
			running.Go(func() {
				for range calls {
					if _, err := p.acquire(t.Context(), "a", c); err != nil {
						t.Error(err)
						continue
					}
					total.Add(1)
				}
			})
		}
	}
	running.Wait()
	return total.Load(), r.reshapes
}

// add charges a bucket by the first version and, 1,234 ms later, by a crowd of the second. It returns the
// process of the first and what is then wrong with the bucket.
func add(t *testing.T, w *world) (old *process, wrong string) {
	t.Helper()
	const day, calls = 24 * time.Hour, 36
	old = w.deploy(t, 1)
	take(t, old, cost{rpm: 20, tpm: 5000})
	w.later(1234 * time.Millisecond)
	admitted, reshapes := w.crowd(t, cost{rpm: 1, tpm: 10, tpd: 7})
	for entity, want := range map[string]map[string]bucket.Balance{
		"user-a": {
			"rpm": {Limit: bucket.Per(60, time.Minute), Tokens: 40_000 + 1234, Consumed: 20_000},
			"tpm": {Limit: bucket.Per(12_000, time.Minute), Tokens: 4_000_000 + 123_400, Consumed: 5_000_000},
			"tpd": {Limit: bucket.Per(100_000, day), Tokens: 100_000_000},
		},
		"project-p": {
			"rpm": {Limit: bucket.Per(600, time.Minute), Tokens: 580_000 + 12_340, Consumed: 20_000},
			"tpm": {Limit: bucket.Per(60_000, time.Minute), Tokens: 55_000_000 + 1_234_000, Consumed: 5_000_000},
			"tpd": {Limit: bucket.Per(700_000, day), Tokens: 700_000_000},
		},
	} {
		s := w.state(t, entity)
		if s.revision != 2 || s.refilled != start+1234 || admitted != calls || reshapes[entity] != 1 {
			wrong += fmt.Sprintf("%s has revision %d, refilled until %d, after %d reshapes and %d admitted; want 2, "+
				"%d, 1 and %d\n",
				entity, s.revision, s.refilled, reshapes[entity], admitted, start+1234, calls)
		}
		for limit, each := range map[string]int64{"rpm": 1000, "tpm": 10_000, "tpd": 7000} {
			left := want[limit]
			left.Tokens, left.Consumed = left.Tokens-calls*each, left.Consumed+calls*each
			if got := s.balances[limit]; got != left {
				wrong += fmt.Sprintf("%s, %s: %+v\nwant %+v\n", entity, limit, got, left)
			}
		}
	}
	return old, wrong
}

// TestAdding: many processes of a new version charge a live bucket at one instant. The limit that they add is
// initialised once, and full. All balances are to the millitoken the old ones less what was admitted. From
// then on the limit refills by the rf that all limits share.
func TestAdding(t *testing.T) {
	w := newWorld(t)
	old, wrong := add(t, w)
	if wrong != "" {
		t.Error(wrong)
	}
	// tpd has 252 to regain. That takes 217.728 s, by whatever others do meanwhile.
	for range 4 {
		w.later(54 * time.Second)
		take(t, old, cost{rpm: 1, tpm: 1})
	}
	w.later(1727 * time.Millisecond)
	if got := w.level(w.state(t, "user-a"), "tpd"); got != 99_999_999 {
		t.Errorf("a millisecond before it is full tpd has %d, want 99999999", got)
	}
	w.later(time.Millisecond)
	if got := w.level(w.state(t, "user-a"), "tpd"); got != 100_000_000 {
		t.Errorf("tpd has %d, want 100000000", got)
	}
}

// TestAddingSees is the negative control: a limit that every process adds again shows.
func TestAddingSees(t *testing.T) {
	w := newWorld(t)
	w.wrap = func(api dynamo.API) dynamo.API {
		return &edited{api, func(update, condition string) (string, string) {
			return strings.Replace(update, "if_not_exists(b_tpd_tk, :tpd_bx)", ":tpd_bx", 1),
				strings.NewReplacer("rf = :rf0 AND cv = :cv", "(rf = :rf0 OR cv <> :cv)", "OR b_tpd_tk",
					"OR NOT b_tpd_tk").Replace(condition)
		}}
	}
	if _, wrong := add(t, w); !strings.Contains(wrong, "user-a, tpd") {
		t.Errorf("it does not: %s", wrong)
	}
}
