package main

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/internal/tool/chart"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// tiny is a world that takes no time.
func tiny(args ...string) []string {
	return append([]string{"-simulate", "-entities", "3", "-resources", "2", "-windows", "40"}, args...)
}

func settle(t *testing.T, args ...string) settings {
	t.Helper()
	s, err := parse(flag.NewFlagSet("regions", flag.ContinueOnError), args)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestSimulate runs the program as -simulate does: for every shape, with faults too.
func TestSimulate(t *testing.T) {
	for _, shape := range shapes() {
		t.Run(shape, func(t *testing.T) {
			picture := filepath.Join(t.TempDir(), "out.svg")
			var out, progress strings.Builder
			s := settle(t, tiny("-shape", shape, "-faults", "3", "-svg", picture, "-price-write", "1.25")...)
			if err := simulate(t.Context(), s, &out, &progress); err != nil {
				t.Fatal(err)
			}
			for _, said := range []string{"fault: ", "\ncheck: ok: at none of ", "$1.25 per million write units",
				"demand is " + shape} {
				if !strings.Contains(out.String(), said) {
					t.Errorf("it did not say %q:\n%s", said, &out)
				}
			}
			if !strings.Contains(progress.String(), "window ") {
				t.Errorf("no progress: %q", &progress)
			}
			drawn, err := os.ReadFile(picture)
			if err != nil {
				t.Fatal(err)
			}
			d := xml.NewDecoder(strings.NewReader(string(drawn)))
			for err == nil {
				_, err = d.Token()
			}
			if !errors.Is(err, io.EOF) {
				t.Errorf("the picture is no XML: %v", err)
			}
		})
	}
}

// played is a tiny world, played.
func played(t *testing.T) *play {
	t.Helper()
	s := settle(t, tiny()...).world
	p, err := run(t.Context(), s, s.world(), io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestFigures: what is printed and drawn is what the simulator counted.
func TestFigures(t *testing.T) {
	p := played(t)
	got, want := p.mean(p.samples).writes, float64(p.result.Writes)/float64(p.windows*p.regions)
	if want == 0 || math.Abs(got-want) > want/20 { // what is written after the last sample is in no window
		t.Errorf("%v writes in a region and window, want %v", got, want)
	}
	for _, together := range []int{1, 3} {
		c := p.chart(together)
		quotas, asked := c.Panels[0], c.Panels[1]
		if want := (len(p.samples) + together - 1) / together; len(quotas.Bars) != want || len(asked.Bars) != want {
			t.Fatalf("%d and %d bars of %d windows", len(quotas.Bars), len(asked.Bars), len(p.samples))
		}
		for i, b := range quotas.Bars {
			last := min(i*together+together, len(p.samples)) - 1
			sum := int64(0)
			for _, n := range p.samples[last].First {
				sum += n
			}
			if b.Tokens != float64(sum) || b.Tokens > whole {
				t.Errorf("bar %d is of %v, want %d, and no more than %d", i, b.Tokens, sum, whole)
			}
		}
		if slices.ContainsFunc(asked.Bars, func(b chart.Bar) bool { return b.Tokens <= 0 }) {
			t.Error("nothing is asked of the first bucket")
		}
	}
}

// greedy is a sync that has its region use all of the first bucket's limit.
type greedy struct{ region.Config }

// Cycle writes that.
func (g greedy) Cycle(ctx context.Context) (*region.Report, error) {
	spec := g.Specs[0]
	all := spec.Kinds[0].Limits[0]
	_, err := g.Table.PutQuota(ctx, spec, store.Stored{At: "user-1", Limits: []*bucket.Limit{&all}, Epoch: 1})
	beat := store.Heartbeat{Epoch: 1, Expires: g.Clock.Now().Add(3 * window).UnixMilli()}
	return &region.Report{Region: g.Region}, errors.Join(err, g.Table.PutHeartbeat(ctx, beat))
}

// TestViolation: the control. Quotas that are more than all end the world, and the program fails.
func TestViolation(t *testing.T) {
	s := settle(t, tiny()...).world
	w := s.world()
	w.New = func(c region.Config) (regionsim.Sync, error) { return greedy{c}, nil }
	p, err := run(t.Context(), s, w, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.check(); err == nil || !strings.Contains(err.Error(), "user-1 on model-1: rpm: quotas") {
		t.Errorf("the check returns %v", err)
	}
	var out strings.Builder
	if err := p.print(&out, prices{}); err != nil || strings.Contains(out.String(), "check: ok") {
		t.Errorf("%v; it said that all was well:\n%s", err, &out)
	}
}

// TestBill: 20,000 quotas of 10 resources, 10 s windows, a month of 30 days: 2,698 million read units, as
// docs/regions.md has it.
func TestBill(t *testing.T) {
	for _, test := range []struct {
		writes    float64
		want, all string
	}{
		{20_000, "$6,480.00", "$7,156.50"}, // 5,184 million
		{600, "$194.40", "$870.90"},
	} {
		b := rate{writes: test.writes, beats: 1, puts: 1, gets: 3}.bill(1, 20_000, 10, window)
		lines := b.lines(prices{write: 1.25, read: 0.25, put: 5, get: 0.4})
		if got := lines[0].cost(); got != test.want || b.quotas != test.writes*259_200 {
			t.Errorf("%v writes in a cycle: %v a month, %s, want %s", test.writes, b.quotas, got, test.want)
		}
		var rest []string
		for _, l := range lines[1:] {
			rest = append(rest, l.cost())
		}
		if want := []string{"$0.32", "$674.57", "$1.30", "$0.31"}; !slices.Equal(rest, want) {
			t.Errorf("heartbeats, reads, puts and gets are %v, want %v", rest, want)
		}
		if got := dollars(sum(lines)); got != test.all {
			t.Errorf("all is %s, want %s", got, test.all)
		}
	}
	if got := dollars(0.999); got != "$1.00" {
		t.Errorf("a dollar less a mill is %s", got)
	}
}

// TestNoPrices: no amount without a price.
func TestNoPrices(t *testing.T) {
	s := settle(t, tiny()...)
	var out strings.Builder
	if err := compare(&out, rate{writes: 1}, s.world, s.prices); err != nil ||
		strings.Contains(out.String(), "$") || !strings.Contains(out.String(), "give -price-write") {
		t.Errorf("%v\n%s", err, &out)
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct {
		args, want string
	}{
		{"-simulate -regions 9", "-regions is 9: want 2 to 8"},
		{"-simulate -shape sun", `-shape is "sun": want one of mixed, stable, `},
		{"-simulate -price-read -1", "-price-read is -1: want dollars per million read units, 0 or above"},
		{"-simulate -price-get NaN", "-price-get is NaN: want dollars per million gets, 0 or above"},
		{"-simulate -svg no/such/folder.svg",
			"-svg: there is no folder no/such: make it, or name a file elsewhere"},
		{"-simulate 3", `unexpected argument "3": run with -help for the flags`},
		{"-entities 3", "flags are for the simulation: add -simulate"},
	} {
		_, err := parse(flag.NewFlagSet("regions", flag.ContinueOnError), strings.Fields(test.args))
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.args, err, test.want)
		}
	}
	if _, err := parse(flag.NewFlagSet("regions", flag.ContinueOnError), nil); err != nil {
		t.Error(err)
	}
}

// TestSame: the same flags print the same.
func TestSame(t *testing.T) {
	printed := func(seed string) string {
		var out strings.Builder
		if err := simulate(t.Context(), settle(t, tiny("-faults", "2", "-seed", seed)...), &out,
			io.Discard); err != nil {
			t.Fatal(err)
		}
		return out.String()
	}
	one := printed("1")
	if again := printed("1"); again != one {
		t.Errorf("once\n%s\nthen\n%s", one, again)
	}
	if printed("2") == one {
		t.Error("the seed makes no difference")
	}
}

// TestNoTime: where cycles do not get round to what they plan, nobody is told that so few writes were enough.
func TestNoTime(t *testing.T) {
	const said = "It planned more: 90.0 % of its writes were not done"
	for _, planned := range []int{10, 100} {
		p := played(t)
		for i := range p.samples {
			p.samples[i].Writes, p.samples[i].Triggers = 10, map[region.Trigger]int{region.Drift: planned}
		}
		var out strings.Builder
		if err := p.summary(&out, prices{}); err != nil || strings.Contains(out.String(), said) != (planned > 10) {
			t.Errorf("%d planned, 10 written: %v\n%s", planned, err, &out)
		}
	}
}
