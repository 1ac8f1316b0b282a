package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// processes is how many gateways share the limits. They are one process of the system: each has a Limiter of its own, with
// its own view of the buckets, and shares nothing else with the others.
const processes = 3

// budget is what an acquire may take. It is more than the default second, because the DynamoDB may share this machine with
// whatever else runs on it.
const budget = 5 * time.Second

// simulation is the tenants, the gateways and the books.
type simulation struct {
	settings
	client   *dynamodb.Client
	tenants  []tenant
	limiters []*limits.Limiter
	gateways []*gateway
	meter    *meter
	ledger   *ledger
	before   map[accountKey]int64 // consumed before the run, millitokens: the table may have been used
	engine   *memdynamo.Engine    // in the process, with a meter of its own; nil: another DynamoDB
	wire     *wire                // to engine: it is cut for a while
}

// newSimulation opens the limiters, checks the table, and notes what was consumed before.
func newSimulation(ctx context.Context, client *dynamodb.Client, s settings) (*simulation, error) {
	cast := tenants()
	sim := &simulation{settings: s, client: client, tenants: cast, meter: newMeter(cast), ledger: newLedger()}
	model := llm(s.seed)
	for range processes {
		lim, err := limits.New(dynamo.New(client, s.table),
			runtime.WithObserver(sim.meter.observer()),
			runtime.WithLogger(slog.New(slog.DiscardHandler)), // the report has what it would say of the outage
			runtime.CallDefaults(runtime.Budget(budget)))
		if err != nil {
			return nil, err
		}
		if err := lim.Check(ctx); err != nil { // before serving: table there, keys, indexes, clock
			return nil, err
		}
		sim.limiters = append(sim.limiters, lim)
		sim.gateways = append(sim.gateways, &gateway{gpt4: lim.GPT4, embeddings: lim.Embeddings, model: model})
	}
	if err := cutDown(ctx, sim.limiters[0]); err != nil {
		return nil, err
	}
	var err error
	sim.before, err = sim.consumed(ctx)
	return sim, err
}

// cutDown overrides a limit of one project in the table, as its operators would: the lab has less than limits.yaml says,
// and so less than its users have together.
func cutDown(ctx context.Context, lim *limits.Limiter) error {
	lab := lim.Config.GPT4.Entity(limits.Project{ID: "lab"})
	_, revision, err := lab.Get(ctx)
	if err != nil {
		return err
	}
	_, err = lab.Set(ctx, limits.GPT4Limits{TPM: new(bucket.Per(labTPM, time.Minute).WithBurst(labBurst))}, revision)
	return err
}

// What the lab has left of its 100,000 tokens a minute.
const (
	labTPM   = 18_000
	labBurst = 24_000
)

// run makes traffic for as long as the settings say, and returns when the last call has ended. When ctx ends, so do the
// calls.
func (s *simulation) run(ctx context.Context) {
	open, closed := context.WithTimeout(ctx, s.duration)
	defer closed()
	var calls sync.WaitGroup
	for i := range s.tenants {
		calls.Go(func() { s.drive(open, ctx, &calls, i) })
	}
	if s.wire != nil {
		calls.Go(func() { outageOf(s.duration).strike(open, s.wire) })
	}
	calls.Wait()
}

// drive makes the calls of one tenant, each in a goroutine of its own, until open ends. Which calls these are depends on
// the seed alone.
func (s *simulation) drive(open, ctx context.Context, calls *sync.WaitGroup, index int) {
	t := &s.tenants[index]
	random := rand.New(rand.NewPCG(s.seed, uint64(index)))
	for n := 0; ; {
		for range t.together {
			n++
			process := random.IntN(len(s.gateways))
			prompt := fmt.Sprintf("%s's prompt %d: ", t.name, n) + strings.Repeat("word ", t.words/2+random.IntN(t.words+1))
			calls.Go(func() { s.call(ctx, t, process, prompt) })
		}
		gap := t.every/2 + time.Duration(random.Int64N(int64(t.every)))
		select {
		case <-time.After(gap):
		case <-open.Done():
			return
		}
	}
}

// call makes one call through one of the processes, and books it.
func (s *simulation) call(ctx context.Context, t *tenant, process int, prompt string) {
	g := s.gateways[process]
	if t.embeds {
		degraded, err := g.embed(ctx, t.user.Project)
		s.ledger.embedded(t, degraded, err)
		return
	}
	if t.waits {
		g = g.forBatch(s.limiters[process].GPT4)
	}
	reply, err := g.complete(ctx, t.user, prompt)
	s.ledger.completed(t, estimate(prompt), reply, err)
}

// close waits for what the limiters still do in the background.
func (s *simulation) close(ctx context.Context) error {
	for _, lim := range s.limiters {
		if err := lim.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// consumed reads from the table what was ever consumed, per bucket and limit, in millitokens.
func (s *simulation) consumed(ctx context.Context) (map[accountKey]int64, error) {
	sums := map[accountKey]int64{}
	for _, l := range lines(s.tenants) {
		img, err := dynamo.Inspect(ctx, s.client, s.table, l.entity, l.resource)
		if err != nil {
			return nil, err
		}
		if img == nil {
			continue
		}
		for _, b := range img.Extra {
			sums[accountKey{l.place, b.Name}] = b.Consumed
		}
	}
	return sums, nil
}
