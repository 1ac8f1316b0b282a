package dynamo

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// lateFirst has the first copy of a transaction arrive late. A second copy comes first, and is refused. Then
// the first one is applied, and others write.
type lateFirst struct {
	*simTable
	armed  bool
	first  *dynamodb.TransactWriteItemsInput
	refuse func(refuse bool) // has the bucket refuse all copies, or take them again
	others func()
}

func (d *lateFirst) TransactWriteItems(
	ctx context.Context, in *dynamodb.TransactWriteItemsInput, opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	switch {
	case !d.armed:
	case d.first == nil:
		d.first = in
		return nil, errReset
	case aws.ToString(in.ClientRequestToken) == aws.ToString(d.first.ClientRequestToken):
		d.armed = false
		d.refuse(true)
		out, refused := d.simTable.TransactWriteItems(ctx, in, opts...)
		d.refuse(false)
		if _, err := d.simTable.TransactWriteItems(ctx, d.first, opts...); err != nil {
			return nil, err
		}
		d.others()
		return out, refused
	}
	return d.simTable.TransactWriteItems(ctx, in, opts...)
}

// giveBackInDoubt plays that for a transaction that gives six tokens back, of ten, and takes one. Others take
// two. It returns what the project's bucket says was used of its day, and with which error the lazy settle
// ended.
func giveBackInDoubt(t *testing.T, change storeChange) (used int64, settled error) {
	t.Helper()
	mail := mailResource(t)
	h := &history{limits: [][]bucket.Limit{allowances(1000, 100)}, windows: threeTZData(), above: []int64{2}}
	def := h.opening(h.definitions(mail), 0)[0]
	costs := func(n int64) []int64 {
		cost := make([]int64, simLimits)
		cost[simDaily] = n * bucket.Milli
		return cost
	}
	synctest.Test(t, func(t *testing.T) {
		table := newSimTable(1, mail.Decode)
		table.minDelay, table.maxDelay = 0, 0
		project := keyOf(item.BucketKey("project-1", mail.Spec().Resource))
		network := &lateFirst{simTable: table}
		p, other := newProcess(t, network, 1, 0, change, def), newProcess(t, table, 2, 0, nil, def)
		acquire := func(p *process, n int64) *store.Call {
			call, err := caller{process: p}.acquireOf(t.Context(), def, costs(n), h.chain(0))
			if err != nil {
				t.Fatal(err)
			}
			return call
		}
		network.refuse = func(refuse bool) {
			table.mu.Lock()
			defer table.mu.Unlock()
			stored := table.items[project]
			if stored["cv"] = codec.N(def.Spec().Revision * 100_000_000_000_000); refuse {
				stored["cv"] = codec.N(number(stored["cv"]) + 1)
			}
		}
		network.others = func() { acquire(other, 2) }
		lease := acquire(p, 10)
		<-time.After(time.Second)
		later := func(err error) { settled = err }
		if err := (caller{process: p}).settleOr(t.Context(), lease, costs(4), later); err != nil {
			t.Fatal(err)
		}
		network.armed = true
		acquire(p, 1)
		for _, p := range []*process{p, other} {
			if err := p.session.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if network.armed {
			t.Fatal("no transaction was sent twice")
		}
		daily := table.image(table.items[project]).Balances[simDaily]
		used = (daily.Burst - daily.Tokens) / bucket.Milli
	})
	return used, settled
}

// TestGiveBackInDoubt: what a transaction of unknown outcome gives back is never sent again, even if a later
// copy of it is refused.
func TestGiveBackInDoubt(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	used, settled := giveBackInDoubt(t, nil)
	if want := int64(4 + 1 + 1 + 2); used != want { // the acquire of one goes again, and is charged twice
		t.Errorf("%d used, want %d", used, want)
	}
	if !errors.Is(settled, scheduler.ErrUncertain) {
		t.Errorf("the settle ended with %v, want %v", settled, scheduler.ErrUncertain)
	}
}

// TestGiveBackInDoubtSees is its control: sent again, it comes back twice.
func TestGiveBackInDoubtSees(t *testing.T) {
	skipOnLocal(t)
	t.Parallel()
	used, settled := giveBackInDoubt(t, func(s *Store) { s.seams.RepeatsInDoubt = true })
	if want := int64(4 + 1 + 1 + 2 - 6); used != want || settled != nil {
		t.Errorf("%d used, and the settle ended with %v: want %d, forged", used, settled, want)
	}
}
