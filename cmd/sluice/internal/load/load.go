package load

import (
	"context"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/runtime/store"
)

type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	InProcess bool           `help:"Load the engine in this process, a DynamoDB in memory, in place of a table."`
	Trip      *time.Duration `placeholder:"4ms" help:"With --in-process: how long a round trip takes. The default is no time."`

	Mix      []string `sep:"none" placeholder:"KIND:RESOURCE[=WEIGHT]" help:"Calls of these entities on this resource, as in user:gpt-4=3; may be repeated. The default is all that the schema has, each as often."`
	Cost     []string `sep:"none" placeholder:"[RESOURCE:]LIMIT=N[..M]" help:"What calls cost, as in tpm=100..2000; may be repeated. The default is the limit's per_call, or else 1."`
	Settle   []string `sep:"none" placeholder:"[RESOURCE:]LIMIT=N[..M]" help:"Settle calls, on this for the limit and as acquired for others; may be repeated. Without it none is settled."`
	Entities int      `default:"1000" help:"How many entities of each kind call."`
	Children int      `default:"10" help:"How many entities share a parent."`
	Hot      *string  `xor:"keys" placeholder:"K=SHARE" help:"K entities make this share of the calls, as in 10=80%. The default is all alike."`
	Zipf     *float64 `xor:"keys" placeholder:"S" help:"The nth entity calls in proportion to 1/n^S, S above 1 and up to 10."`

	Concurrency int           `default:"16" help:"How many callers there are: so many calls are under way at most."`
	Limiters    int           `default:"1" help:"How many limiters the callers have, which share nothing but what is stored, as processes do."`
	Rate        *float64      `placeholder:"N" help:"Calls that come due in a second, whatever others take. The default is as fast as callers are answered."`
	Duration    time.Duration `default:"10s" help:"How long calls begin."`
	Calls       *int64        `placeholder:"N" help:"End after so many calls, if that is sooner."`
	Units       *int64        `placeholder:"N" help:"End once so many capacity units are consumed, if that is sooner; what is under way is finished. The default is 1000000 on a table, and no bound in process."`
	Seed        uint64        `default:"1" help:"What calls are drawn from: the nth call of a seed is always the same."`

	PriceRead  *float64 `placeholder:"DOLLARS" help:"Dollars per million read units, for what it costs."`
	PriceWrite *float64 `placeholder:"DOLLARS" help:"Dollars per million write units."`

	Yes     bool `help:"Write to a place that is not known to be for tests."`
	Cleanup bool `help:"Delete the buckets of the entities that called, and of their parents, in the end."`
	JSON    bool `name:"json" help:"Print what it came to as JSON."`
}

// Help says how it is done.
func (Command) Help() string {
	return `Callers acquire through limiters as programs have them: what DynamoDB or Redis is sent is word for word what the package generated from the schema sends. What differs is on this side: operands are looped over that generated code has written out, which takes about as long, a third of a microsecond. on_unavailable and settle are as in the schema, options as they are without any. All callers are in this process: where it has no CPU left, latency is its own, and it says so.

With --rate, latency counts from the moment when a call was due, so that a store which stands still for a second is seen by all calls of that second; what a timer is late by, up to 2ms, is left out where a caller was free. A call that is due while all callers wait begins late; one that is still due in the end is not made, and is told. Without --rate, each caller calls again once it is answered: that finds out how much a place takes, and hides how long others would wait.

It writes real buckets, which cost what buckets cost: those of entities user-load-0, user-load-1 and so on, which no others share, and of their parents. They expire as all do, or at once with --cleanup. A table is known to be for tests where it is on this machine, or has one of ` + testWords() + ` in its name, as in load_limits; a Redis where it is on this machine, or has one in its --prefix. To other places it writes with --yes. Streams, and what reads them, see these writes too.

Ctrl-C ends it early, with the report so far, and after --cleanup; a second one ends it at once. The exit code is 1 where calls cannot succeed: no table, no rights.

Prices differ by region, and change: none is built in.

Example: sluice load --in-process --mix user:gpt-4 --cost tpm=100..2000 --settle tpm=50..1500 --rate 500`
}

// aboutTables are the flags that a Redis, which has no capacity units, has no use for.
var aboutTables = []string{"units", "price-read", "price-write"}

// AfterApply refuses to choose between the engine in this process and another place, and flags that the place has no use for.
func (c *Command) AfterApply(command *kong.Context) error {
	if !c.InProcess {
		if c.Trip != nil {
			return fmt.Errorf("--trip is about the engine in this process: pass --in-process too")
		}
		if err := c.TableOrRedis.AfterApply(command); err != nil {
			return err
		}
		if other := connect.Given(command, aboutTables...); other != nil && c.Redis != nil {
			return fmt.Errorf("--%s is about capacity units, which a Redis has none of: leave it out", other.Name)
		}
		return nil
	}
	if other := connect.Given(command, "endpoint", "region", "table", "redis", "prefix"); other != nil {
		return fmt.Errorf("--in-process is a place of its own, --%s is about another: pass one", other.Name)
	}
	c.Redis = nil
	return nil
}

// Run makes the calls and prints what they came to.
func (c *Command) Run(ctx context.Context, p program.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	s, err := c.Read()
	if err != nil {
		return err
	}
	plan, err := c.plan(s)
	if err != nil {
		return err
	}
	statements, err := gen.LoadStatements(c.File)
	if err != nil {
		return err
	}
	at, err := c.place(ctx, s)
	if err != nil {
		return err
	}
	defer at.close()
	progress := newProgress(p, c)
	run, err := load.New(load.Config{
		Plan: plan, Statements: statements, Store: at.store, Limiters: c.Limiters, Callers: c.Concurrency,
		Rate: value(c.Rate), Duration: c.Duration, Calls: value(c.Calls), Units: float64(c.bound()),
		Clock: store.SystemClock(), Told: progress.show,
	})
	if err == nil {
		err = run.Check(ctx)
	}
	if err != nil {
		return at.explain(err)
	}
	p.Note("%s", c.announcement(at, plan))
	before := at.billed(load.Units{})
	result := run.Do(ctx)
	progress.Wipe()
	if result.Starved >= shortOfCPU {
		p.Note("this process was short of CPUs: one in a hundred times, what could go on waited for one for about %s or longer, and latencies have that: "+
			"lower --rate or --concurrency, or start several loads, on machines of their own\n", latencyOf(result.Starved))
	}
	report := summary{
		Place: at.name, Schema: c.File, Callers: c.Concurrency, Limiters: c.Limiters, Rate: value(c.Rate), Seed: c.Seed,
		Result: result, Settings: c.settings(plan), Cost: c.cost(result), Billed: at.billed(value(before)), inProcess: c.InProcess, trip: value(c.Trip), redis: c.Redis != nil,
	}
	if c.Cleanup {
		var n int
		if n, err = c.cleanUp(ctx, p, at, plan, result); err == nil {
			report.Cleanup = &n
		} else {
			err = fmt.Errorf("clean up: %w; what is left expires by itself", at.explain(err))
		}
	}
	if shown := report.show(p, c.JSON); shown != nil {
		return shown
	}
	if wrong := report.wrong(); wrong != nil {
		return at.explain(wrong)
	}
	return err
}

// shortOfCPU is how many milliseconds for a CPU are told: below, they do not matter beside a network.
const shortOfCPU = 2

// value returns what a flag was given, 0 where it was not.
func value[T any](flag *T) (v T) {
	if flag != nil {
		v = *flag
	}
	return v
}

// check holds the numbers against what there can be.
func (c *Command) check() error {
	text := ""
	switch {
	case c.Trip != nil && (*c.Trip < 0 || *c.Trip > time.Minute):
		text = fmt.Sprintf("--trip %v: want 0s to 1m", *c.Trip)
	case c.Entities < 1 || c.Entities > 10_000_000:
		text = fmt.Sprintf("--entities %d: want 1 to 10000000", c.Entities)
	case c.Children < 1:
		text = fmt.Sprintf("--children %d: want 1 or more", c.Children)
	case c.Zipf != nil && !(*c.Zipf > 1 && *c.Zipf <= 10):
		text = fmt.Sprintf("--zipf %v: want above 1, and up to 10", *c.Zipf)
	case c.Concurrency < 1 || c.Concurrency > 100_000:
		text = fmt.Sprintf("--concurrency %d: want 1 to 100000", c.Concurrency)
	case c.Limiters < 1 || c.Limiters > c.Concurrency:
		text = fmt.Sprintf("--limiters %d: want 1 to %d, as many as there are callers (--concurrency)", c.Limiters, c.Concurrency)
	case c.Rate != nil && !(*c.Rate > 0 && *c.Rate <= 1e6):
		text = fmt.Sprintf("--rate %v: want calls a second, above 0 and up to 1000000; without --rate it is as fast as callers are answered", *c.Rate)
	case c.Duration <= 0:
		text = fmt.Sprintf("--duration %v: want more than 0", c.Duration)
	case c.Calls != nil && *c.Calls < 1:
		text = fmt.Sprintf("--calls %d: want 1 or more; without --calls the duration alone ends it", *c.Calls)
	case c.Units != nil && *c.Units < 1:
		text = fmt.Sprintf("--units %d: want 1 or more", *c.Units)
	case !(value(c.PriceRead) >= 0 && value(c.PriceRead) <= 1e9):
		text = fmt.Sprintf("--price-read %v: want dollars per million read units, 0 to a billion", *c.PriceRead)
	case !(value(c.PriceWrite) >= 0 && value(c.PriceWrite) <= 1e9):
		text = fmt.Sprintf("--price-write %v: want dollars per million write units, 0 to a billion", *c.PriceWrite)
	}
	if text == "" {
		return nil
	}
	return program.Usagef("%s", text)
}

// settings returns what was asked for.
func (c *Command) settings(plan *load.Plan) settings {
	s := settings{
		Duration: c.Duration.Seconds(), Calls: value(c.Calls), Units: c.bound(), Trip: float64(value(c.Trip)) / 1e6,
		Entities: c.Entities, Children: c.Children, Hot: value(c.Hot), Zipf: value(c.Zipf),
	}
	for i, share := range plan.Mix {
		spec := specOf(plan, i)
		said := shareOfCalls{Weight: share.Weight, Cost: map[string]string{}}
		if share.Settle != nil {
			said.Settle = map[string]string{}
		}
		for j, limit := range spec.Limits {
			said.Cost[limit] = share.Cost[j].String()
			if perCall := spec.Kinds[share.Kind].PerCall[j]; share.Cost[j] == (load.Range{}) {
				said.Cost[limit] = load.Range{Least: perCall, Most: perCall}.String()
			}
			if share.Settle != nil && share.Settle[j] != load.AsAcquired {
				said.Settle[limit] = share.Settle[j].String()
			}
		}
		s.Mix = append(s.Mix, said)
	}
	return s
}

// bound returns how many units may be consumed: 0 is no bound. The engine in this process bills nobody.
func (c *Command) bound() int64 {
	switch {
	case c.Units != nil:
		return *c.Units
	case c.InProcess || c.Redis != nil:
		return 0
	}
	return 1_000_000
}

// cost returns what s costs at the prices given; nil where none was.
func (c *Command) cost(s *load.Result) *costs {
	if !c.priced() {
		return nil
	}
	cost := &costs{PriceRead: value(c.PriceRead), PriceWrite: value(c.PriceWrite)}
	cost.Dollars = (s.Units.Read*cost.PriceRead + s.Units.Write*cost.PriceWrite) / 1e6
	if s.All.Calls > 0 {
		cost.PerMillion = cost.Dollars / float64(s.All.Calls) * 1e6
	}
	if n := s.Outcomes[load.Admitted].Calls + s.Outcomes[load.Degraded].Calls + s.Outcomes[load.Shadowed].Calls; n > 0 {
		cost.PerServed = cost.Dollars / float64(n) * 1e6
	}
	return cost
}

// priced reports that there is a price, and something that has it.
func (c *Command) priced() bool { return c.PriceRead != nil || c.PriceWrite != nil }
