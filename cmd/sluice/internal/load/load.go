// Package load is `sluice load`: it measures limits under load.
package load

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice load`.
type Command struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	InProcess bool           `help:"Load an engine in this process, a DynamoDB in memory."`
	Trip      *time.Duration `placeholder:"4ms" help:"With --in-process: duration of a round trip."`

	Mix      []string `sep:"none" placeholder:"KIND:RESOURCE[=WEIGHT]" help:"${mix}"`
	Cost     []string `sep:"none" placeholder:"[RESOURCE:]LIMIT=N[..M]" help:"${cost}"`
	Settle   []string `sep:"none" placeholder:"[RESOURCE:]LIMIT=N[..M]" help:"${settle}"`
	Entities int      `default:"1000" help:"Number of entities of each kind that call."`
	Children int      `default:"10" help:"Number of entities with the same parent."`
	Hot      *string  `xor:"keys" placeholder:"K=PERCENT" help:"${hot}"`
	Zipf     *float64 `xor:"keys" placeholder:"S" help:"${zipf}"`

	Concurrency int           `default:"16" help:"Number of callers, and so the most calls at once."`
	Limiters    int           `default:"1" help:"${limiters}"`
	Rate        *float64      `placeholder:"N" help:"${rate}"`
	Duration    time.Duration `default:"10s" help:"Start no calls after this time."`
	Calls       *int64        `placeholder:"N" help:"End after this number of calls, if that is sooner."`
	Units       *int64        `placeholder:"N" help:"${units}"`
	Seed        uint64        `default:"1" help:"Seed of the calls: the nth call of a seed is always the same."`

	PriceRead  *float64 `placeholder:"DOLLARS" help:"Dollars per million read units."`
	PriceWrite *float64 `placeholder:"DOLLARS" help:"Dollars per million write units."`

	Yes     bool `help:"Write to a place that is not known to be for tests."`
	Cleanup bool `help:"Finally, delete the buckets of the callers and of their parents."`
	JSON    bool `name:"json" help:"Print the report as JSON."`
}

// Help describes how the load is made.
func (Command) Help() string {
	return "Callers acquire through limiters as programs do. DynamoDB or Redis gets exactly the " +
		"requests of the generated package. This side differs in one thing: it loops over operands, " +
		"where generated code has each written out. Both take about a third of a microsecond. " +
		"on_unavailable and settle are those of the schema; options have their defaults. All callers " +
		"are in this process. If it has no CPU left, it adds to latencies, and the report says so.\n\n" +
		"With --rate, the latency of a call counts from the moment when it was due. All calls of a " +
		"second in which the store stands still so see that second. The delay of a timer, up to 2ms, " +
		"is left out if a caller was free. A call that is due while all callers wait begins late. If " +
		"it is still due in the end, it is not made, and the report says so. Without --rate, each " +
		"caller calls again as soon as it is answered. That measures the throughput of a place, but " +
		"hides how long others would wait.\n\n" +
		"An admitted call ends at once, by Settle or Keep. So it holds slots of limits in flight only for as " +
		"long as the write takes that gives them back.\n\n" +
		"It writes real buckets at their real cost: those of entities user-load-0, user-load-1 and " +
		"so on, which nothing else uses, and of their parents. They expire as usual, or are deleted " +
		"with --cleanup. A table is known to be for tests if it is on this machine or has one of " +
		"" + testWords() + " in its name, such as load_limits. A Redis is if it is on this machine or has one of " +
		"them in its --prefix. Other places need --yes. Streams and their readers see these writes, " +
		"too.\n\n" +
		"Ctrl-C ends it early, with a report and --cleanup; a second one ends it at once. The exit " +
		"code is 1 if calls cannot succeed, for want of a table or of rights.\n\n" +
		"Prices differ by region and change, so none is built in.\n\n" +
		"Example: sluice load --in-process --mix user:gpt-4 --cost tpm=100..2000 --settle " +
		"tpm=50..1500 --rate 500"
}

// aboutTables are flags that are of no use on a Redis, which has no capacity units.
var aboutTables = []string{"units", "price-read", "price-write"}

// AfterApply decides between the engine in this process and another place, and refuses flags that are of no
// use there.
func (c *Command) AfterApply(command *kong.Context) error {
	if !c.InProcess {
		if c.Trip != nil {
			return fmt.Errorf("--trip is for the engine in this process: pass --in-process too")
		}
		if err := c.TableOrRedis.AfterApply(command); err != nil {
			return err
		}
		if other := connect.Given(command, aboutTables...); other != nil && c.Redis != nil {
			return fmt.Errorf("--%s is for capacity units, which a Redis does not have: leave it out", other.Name)
		}
		return nil
	}
	if other := connect.Given(command, "endpoint", "region", "table", "namespace", "redis",
		"prefix"); other != nil {
		return fmt.Errorf("--in-process and --%s name different places: pass one of them", other.Name)
	}
	c.Redis = nil
	return nil
}

// Run makes the calls and prints a report.
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
		Clock: store.SystemClock(), OnReport: progress.show,
	})
	if err == nil {
		err = run.Check(ctx)
	}
	if err != nil {
		return at.explain(err)
	}
	p.Note("%s", c.announcement(at, plan))
	before := at.billed(load.Units{})
	result := run.Do(program.Patient(ctx))
	progress.Wipe()
	noteStarved(p, result)
	report := summary{
		Place: at.name, Schema: c.File, Callers: c.Concurrency, Limiters: c.Limiters, Rate: value(c.Rate),
		Seed:   c.Seed,
		Result: result, Settings: c.settings(plan), Cost: c.cost(result), Billed: at.billed(value(before)),
		inProcess: c.InProcess, trip: value(c.Trip), redis: c.Redis != nil,
	}
	if c.Cleanup {
		var n int
		if n, err = c.cleanUp(ctx, p, at, plan, result); err == nil {
			report.Cleanup = &n
		} else {
			err = fmt.Errorf("clean up: %w; the remaining buckets expire", at.explain(err))
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

// noteStarved reports that the process was short of CPUs.
func noteStarved(p program.Env, result *load.Result) {
	if result.Starved >= shortOfCPU {
		p.Note("this process was short of CPUs: one in a hundred times, a runnable goroutine waited about %s or "+
			"longer for one, which adds to latencies: lower --rate or --concurrency, or start several loads on "+
			"different machines\n",
			latencyOf(result.Starved))
	}
}

// shortOfCPU is the wait for a CPU, in ms, that is reported. Shorter waits do not matter beside a network.
const shortOfCPU = 2

// value returns the value of an optional flag, or its zero value.
func value[T any](flag *T) (v T) {
	if flag != nil {
		v = *flag
	}
	return v
}

// plain writes a flag's number as people type it: without an exponent.
func plain(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// check returns a usage error for numbers that are out of range.
func (c *Command) check() error {
	text := ""
	switch {
	case c.Trip != nil && (*c.Trip < 0 || *c.Trip > time.Minute):
		text = fmt.Sprintf("--trip %v is out of range: pass 0s to 1m", *c.Trip)
	case c.Entities < 1 || c.Entities > 10_000_000:
		text = fmt.Sprintf("--entities %d is out of range: pass 1 to 10000000", c.Entities)
	case c.Children < 1:
		text = fmt.Sprintf("--children %d is out of range: pass 1 or more", c.Children)
	case c.Zipf != nil && !(*c.Zipf > 1 && *c.Zipf <= 10):
		text = fmt.Sprintf("--zipf %s is out of range: pass more than 1 and up to 10", plain(*c.Zipf))
	case c.Concurrency < 1 || c.Concurrency > 100_000:
		text = fmt.Sprintf("--concurrency %d is out of range: pass 1 to 100000", c.Concurrency)
	case c.Limiters < 1 || c.Limiters > c.Concurrency:
		text = fmt.Sprintf("--limiters %d is out of range: pass 1 to %d, the number of callers (--concurrency)",
			c.Limiters,
			c.Concurrency)
	case c.Rate != nil && !(*c.Rate > 0 && *c.Rate <= 1e6):
		text = fmt.Sprintf("--rate %s is out of range: pass more than 0 and up to 1000000, or leave the flag "+
			"out for full speed", plain(*c.Rate))
	case c.Duration <= 0:
		text = fmt.Sprintf("--duration %v is out of range: pass more than 0", c.Duration)
	case c.Calls != nil && *c.Calls < 1:
		text = fmt.Sprintf("--calls %d is out of range: pass 1 or more, or leave the flag out to end after "+
			"--duration", *c.Calls)
	case c.Units != nil && *c.Units < 1:
		text = fmt.Sprintf("--units %d is out of range: pass 1 or more", *c.Units)
	case !(value(c.PriceRead) >= 0 && value(c.PriceRead) <= 1e9):
		text = fmt.Sprintf("--price-read %s is out of range: pass dollars per million read units, 0 to a billion",
			plain(*c.PriceRead))
	case !(value(c.PriceWrite) >= 0 && value(c.PriceWrite) <= 1e9):
		text = fmt.Sprintf("--price-write %s is out of range: pass dollars per million write units, 0 to a billion",
			plain(*c.PriceWrite))
	}
	if text == "" {
		return nil
	}
	return program.Usagef("%s", text)
}

// settings returns the settings for the report.
func (c *Command) settings(plan *load.Plan) settings {
	s := settings{
		Duration: c.Duration.Seconds(), Calls: value(c.Calls), Units: c.bound(), Trip: float64(value(c.Trip)) / 1e6,
		Entities: c.Entities, Children: c.Children, Hot: value(c.Hot), Zipf: value(c.Zipf),
	}
	for i, mixed := range plan.Mix {
		spec := specOf(plan, i)
		out := portion{Weight: mixed.Weight, Cost: map[string]string{}}
		if mixed.Settle != nil {
			out.Settle = map[string]string{}
		}
		for j, limit := range spec.Limits {
			if !spec.Charges(mixed.Kind, j) {
				continue
			}
			out.Cost[limit] = mixed.Cost[j].In(spec.Unit(j))
			if perCall := spec.Kinds[mixed.Kind].PerCall[j]; mixed.Cost[j] == (load.Range{}) {
				out.Cost[limit] = load.Range{Least: perCall, Most: perCall}.In(spec.Unit(j))
			}
			if mixed.Settle != nil && mixed.Settle[j] != load.AsAcquired {
				out.Settle[limit] = mixed.Settle[j].In(spec.Unit(j))
			}
		}
		s.Mix = append(s.Mix, out)
	}
	return s
}

// bound returns how many units may be consumed; 0 is no bound. The engine in this process bills nobody.
func (c *Command) bound() int64 {
	switch {
	case c.Units != nil:
		return *c.Units
	case c.InProcess || c.Redis != nil:
		return 0
	}
	return 1_000_000
}

// cost returns the cost of s at the given prices, or nil without prices.
func (c *Command) cost(s *load.Result) *costs {
	if !c.priced() {
		return nil
	}
	cost := &costs{PriceRead: value(c.PriceRead), PriceWrite: value(c.PriceWrite)}
	cost.Dollars = (s.Units.Read*cost.PriceRead + s.Units.Write*cost.PriceWrite) / 1e6
	if s.All.Calls > 0 {
		cost.PerMillion = cost.Dollars / float64(s.All.Calls) * 1e6
	}
	if n := s.Outcomes[load.Admitted].Calls + s.Outcomes[load.Degraded].Calls +
		s.Outcomes[load.Shadowed].Calls; n > 0 {
		cost.PerServed = cost.Dollars / float64(n) * 1e6
	}
	return cost
}

// priced reports whether there is a price.
func (c *Command) priced() bool { return c.PriceRead != nil || c.PriceWrite != nil }

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"mix": "Calls of a kind's entities on a resource, such as user:gpt-4=3; repeatable. The default is " +
			"all of the schema, with equal weights.",
		"cost": "Cost of calls, such as tpm=100..2000; repeatable. The default is the limit's per_call, or " +
			"else 1.",
		"settle": "Settle calls to this cost for the limit, and as acquired for others; repeatable. By " +
			"default, no call is settled.",
		"hot": "K entities make this portion of the calls, such as 10=80%. By default, all entities call " +
			"alike.",
		"zipf": "The nth entity calls in proportion to 1/n^S, with S above 1 and up to 10.",
		"limiters": "Number of limiters of the callers. Like processes, they have only the stored state in " +
			"common.",
		"rate": "Calls that are due per second. By default, each caller calls again as soon as it is " +
			"answered.",
		"units": "End after consuming this number of capacity units, if that is sooner; pending calls finish. " +
			"The default is 1000000 on a table, and no bound in process.",
	}
}
