package main

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// simulated is how many gateways share the limits. They run in one process of the system, but share nothing
// else: each has a Limiter with its own cache of the buckets, and an address of its own.
const simulated = 3

// budget is what an acquire may take. It is more than the default second, because the DynamoDB may share this
// machine with whatever else runs on it.
const budget = 5 * time.Second

// simulation is the tenants, the gateways and the books.
type simulation struct {
	settings
	dynamodb *dynamodb.Client
	tenants  []tenant
	limiters []*limits.Limiter
	gateways []*gateway // one for each limiter
	fronts   []*front   // likewise
	caller   *caller
	audit    *audit
	meter    *meter
	provider *provider
	ledger   *ledger
	board    *board
	began    time.Time
	before   map[accountKey]balance // before the run: the table may have been used
	engine   *memdynamo.Engine      // in the process, with a meter of its own; nil: another DynamoDB
	wire     *wire                  // to engine: it is cut for a while
}

// newSimulation opens the limiters, checks the table, notes what was consumed before, and serves the
// gateways.
func newSimulation(
	ctx context.Context, client *dynamodb.Client, on network, s settings,
) (*simulation, error) {
	cast := tenants()
	sim := &simulation{settings: s, dynamodb: client, tenants: cast, caller: &caller{}, meter: newMeter(cast),
		ledger: newLedger(), board: newBoard(cast, s.duration), provider: newProvider(), began: time.Now()}
	sim.caller.board, sim.board.peak = sim.board, sim.provider.peak
	sim.audit = newAudit(sim.tenants, sim.ledger)
	for range s.processes() {
		lim, err := limits.New(dynamo.New(client, s.table),
			runtime.WithObserver(sim.ledger.observe(sim.meter.observer())),
			runtime.WithLogger(s.log()),
			runtime.WithCallDefaults(runtime.Budget(budget)))
		if err != nil {
			return nil, err
		}
		if err := lim.Check(ctx); err != nil { // before serving: table there, keys, indexes, clock
			return nil, err
		}
		sim.limiters = append(sim.limiters, lim)
	}
	if err := cutDown(ctx, sim.limiters[0]); err != nil {
		return nil, err
	}
	var err error
	if sim.before, err = sim.stored(ctx); err != nil {
		return nil, err
	}
	for i, lim := range sim.limiters {
		g := &gateway{
			gpt4: lim.GPT4, embeddings: lim.Embeddings, users: users(cast), log: s.log(),
			model: sim.provider.serve(i+1, llm(s.seed)),
		}
		f, err := open(ctx, on, sim.audit.watch(g.handler(g.complete)), s.log())
		if err != nil {
			return nil, err
		}
		sim.gateways, sim.fronts = append(sim.gateways, g), append(sim.fronts, f)
	}
	return sim, nil
}

// log is where gateways say what fails: nowhere in a simulation, whose report has it.
func (s settings) log() *slog.Logger {
	if s.serve == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}

// cutDown overrides a limit of one project in the table, as its operators would: the lab has less than
// limits.yaml says, and so less than its users have together.
func cutDown(ctx context.Context, lim *limits.Limiter) error {
	lab := lim.Config.GPT4.Entity(limits.Project{ID: "lab"})
	_, revision, err := lab.Get(ctx)
	if err != nil {
		return err
	}
	_, err = lab.Set(ctx, limits.GPT4Limits{TPM: &runtime.Rate{Capacity: labTPM, Burst: labBurst}},
		revision)
	return err
}

// The override of the lab, which leaves it this much of its 100,000 tokens a minute.
const (
	labTPM   = 18_000
	labBurst = 24_000
)

// run makes traffic for as long as the settings say, and returns when the last call has ended. When ctx ends,
// so do the calls.
func (s *simulation) run(ctx context.Context) {
	s.board.start()
	open, closed := context.WithTimeout(ctx, s.duration)
	defer closed()
	var calls sync.WaitGroup
	for i := range s.tenants {
		calls.Go(func() { s.drive(open, ctx, &calls, i) })
	}
	if s.wire != nil {
		calls.Go(func() { outageOf(s.duration).strike(open, s.wire, s.board.outage) })
	}
	calls.Wait()
}

// drive makes the calls of one tenant, each in a goroutine of its own, until open ends. Which calls these are
// depends on the seed alone.
func (s *simulation) drive(open, ctx context.Context, calls *sync.WaitGroup, index int) {
	t := &s.tenants[index]
	random := rand.New(rand.NewPCG(s.seed, uint64(index)))
	for n := 0; ; {
		for range t.together {
			n++
			at := s.fronts[random.IntN(len(s.fronts))]
			prompt := fmt.Sprintf("%s's prompt %d: ", t.name, n) + strings.Repeat(words[random.IntN(len(words))],
				t.words/2+random.IntN(t.words+1))
			enough := int64(0)
			if t.hangsUp {
				enough = 1 + random.Int64N(most/3)
			}
			calls.Go(func() { s.call(ctx, at, t, prompt, enough) })
		}
		gap := t.every/2 + time.Duration(random.Int64N(int64(t.every)))
		select {
		case <-time.After(gap):
		case <-open.Done():
			return
		}
	}
}

// words are what prompts are made of. The longer they are, the fewer of them make up an estimate.
var words = []string{"it ", "and ", "word "}

// call makes one call.
func (s *simulation) call(ctx context.Context, at *front, t *tenant, prompt string, enough int64) {
	if t.embeds {
		s.caller.embed(ctx, at, t)
		return
	}
	s.caller.chat(ctx, at, t, prompt, enough)
}

// close ends serving, waits for what gateways and limiters still do, those for clients that have hung up, and
// for the table.
func (s *simulation) close(ctx context.Context) error {
	for _, f := range s.fronts {
		if err := f.shut(ctx); err != nil {
			return err
		}
	}
	for _, lim := range s.limiters {
		if err := lim.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// balance is a limit of a bucket in the table, in millitokens, and when its refill was last claimed.
type balance struct {
	bucket.Balance

	refilled int64 // ms
}

// stored reads the limits of all buckets from the table.
func (s *simulation) stored(ctx context.Context) (map[accountKey]balance, error) {
	all := map[accountKey]balance{}
	var places []place
	for _, l := range lines(s.tenants) {
		places = append(places, l.place)
	}
	for _, org := range payers(s.tenants) {
		places = append(places, org.place)
	}
	for _, at := range places {
		img, err := operator.Inspect(ctx, s.dynamodb, s.table, at.entity, at.resource)
		if err != nil {
			return nil, err
		}
		if img == nil {
			continue
		}
		for _, b := range img.Extra {
			all[accountKey{at, b.Name}] = balance{b.Balance, img.Refilled}
		}
	}
	return all, nil
}
