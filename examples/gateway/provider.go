package main

import (
	"context"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

// slots is how many calls of a user limits.yaml lets run at once.
const slots = 20

// provider counts the calls that run at the model. Of slots and leases it knows one thing: whether the table
// admitted a call, or a gateway by itself while the table was down.
type provider struct {
	mu   sync.Mutex
	runs map[running]int
	most map[running]int
}

// running are the calls of a user that one limit bounds: those that the table admitted, or those that one
// gateway did.
type running struct {
	user    string
	gateway int // counted from 1; 0: the table
}

func newProvider() *provider { return &provider{runs: map[running]int{}, most: map[running]int{}} }

// serve returns next as the model of a gateway, of which these are counted from 1.
func (p *provider) serve(gateway int, next model) model {
	return func(ctx context.Context, c *chat) iter.Seq2[string, error] {
		user, _ := ctx.Value(userKey{}).(limits.User)
		by := running{user: user.ID}
		if httplimit.Lease[limits.GPT4Cost](ctx).Degraded() {
			by.gateway = gateway
		}
		return func(yield func(string, error) bool) {
			p.change(by, 1)
			defer p.change(by, -1)
			next(ctx, c)(yield)
		}
	}
}

// change counts calls that begin, or end.
func (p *provider) change(by running, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.runs[by] += n
	p.most[by] = max(p.most[by], p.runs[by])
}

// peak returns how many calls of a user that the table admitted ran at once, at most.
func (p *provider) peak(user string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.most[running{user: user}]
}

// check holds the calls that ran at once against the slots that there are.
func (p *provider) check(out *strings.Builder) (most int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	wrong := 0
	for by, n := range p.most {
		if n > slots {
			wrong++
			fmt.Fprintf(out, "check: user-%s had %d calls at the model at once, of %d slots\n", by.user, n, slots)
		}
		if by.gateway == 0 {
			most = max(most, n)
		}
	}
	if wrong > 0 {
		return most, fmt.Errorf("%d limits had more calls in flight than slots", wrong)
	}
	return most, nil
}

// checkSlots holds the calls that ran at the model against the slots, and the slots that the table has left
// against all: no call runs any more. A call that failed may have a slot for two minutes.
func (s *simulation) checkSlots(out *strings.Builder, after map[accountKey]balance) error {
	most, err := s.provider.check(out)
	if err != nil {
		return err
	}
	limit := limits.GPT4Parallel.String()
	for i := range s.tenants {
		own := s.tenants[i].charged()[0]
		b, stored := after[accountKey{own, limit}]
		taken := (b.Burst - b.Tokens) / bucket.Milli
		if stored && (taken < 0 || taken > s.ledger.unclear(limit, own)) {
			return fmt.Errorf("%s has %d of %d slots taken, and no call", own.entity, taken,
				b.Burst/bucket.Milli)
		}
	}
	fmt.Fprintf(out,
		"ok: At most %d calls of a key ran at the model at once, of %d slots; all slots are back.\n", most, slots)
	return nil
}
