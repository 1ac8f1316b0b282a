package main

import (
	"flag"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/test/regionsim"
	"github.com/sluice-go/sluice/internal/tool/texttable"
)

// prices are dollars per million of something; 0 is what nobody has told. None is built in: they differ by
// region, and change.
type prices struct{ write, read, put, get float64 }

func (p *prices) flags(flags *flag.FlagSet) {
	flags.Float64Var(&p.write, "price-write", 0, "`dollars` per million write units of DynamoDB")
	flags.Float64Var(&p.read, "price-read", 0, "`dollars` per million read units of DynamoDB")
	flags.Float64Var(&p.put, "price-put", 0, "`dollars` per million snapshots put")
	flags.Float64Var(&p.get, "price-get", 0, "`dollars` per million snapshots read")
}

// named are the prices, as people read them.
func (p *prices) named() []struct {
	flag, of string
	dollars  float64
} {
	return []struct {
		flag, of string
		dollars  float64
	}{
		{"-price-write", "write units", p.write}, {"-price-read", "read units", p.read},
		{"-price-put", "puts", p.put}, {"-price-get", "gets", p.get},
	}
}

// check says which price is wrong.
func (p prices) check() error {
	for _, n := range p.named() {
		if !(n.dollars >= 0 && n.dollars <= 1e9) { // so that NaN fails too
			return fmt.Errorf("%s is %v: want dollars per million %s, 0 or above", n.flag, n.dollars, n.of)
		}
	}
	return nil
}

// String says what the prices were.
func (p prices) String() string {
	var said []string
	for _, n := range p.named() {
		if n.dollars > 0 {
			said = append(said, fmt.Sprintf("$%s per million %s", strconv.FormatFloat(n.dollars, 'f', -1, 64), n.of))
		}
	}
	return strings.Join(said, ", ")
}

// month is that of bills.
const month = 30 * 24 * time.Hour

// bill is what all regions' syncs do in a month.
type bill struct{ quotas, beats, reads, puts, gets float64 }

// rate is how often something happens in a region and window, in the mean.
type rate struct{ writes, beats, puts, gets float64 }

// bill returns what that many regions come to, of which each holds so many quotas of resources of one kind. A
// heartbeat is a write unit, and so is a quota, but for the first of a bucket, which the index has too.
func (r rate) bill(regions, quotas, resources int, window time.Duration) bill {
	n := float64(month/window) * float64(regions)
	read := float64(quotas)*regionsim.BucketUnits + float64(resources)*regionsim.KindUnits
	return bill{r.writes * n, r.beats * n, read * n, r.puts * n, r.gets * n}
}

// line is one of a bill.
type line struct {
	name     string
	n, price float64
}

func (b bill) lines(p prices) []line {
	return []line{
		{"quotas, write units", b.quotas, p.write}, {"heartbeats, write units", b.beats, p.write},
		{"buckets and kinds, read units", b.reads, p.read}, {"snapshots put", b.puts, p.put},
		{"snapshots read", b.gets, p.get},
	}
}

// cost writes what l costs: nothing where nobody has told the price.
func (l line) cost() string {
	if l.price == 0 {
		return ""
	}
	return dollars(l.n / 1e6 * l.price)
}

// sum is what lines cost together, in dollars.
func sum(lines []line) (all float64) {
	for _, l := range lines {
		all += l.n / 1e6 * l.price
	}
	return all
}

// compare prints what a month costs by trigger, and where every quota is written in every cycle.
func compare(out *strings.Builder, trigger rate, s worldSettings, p prices) error {
	always := trigger
	always.writes = float64(s.quotas())
	by, all := trigger.bill(s.regions, s.quotas(), s.resources, window).lines(p),
		always.bill(s.regions, s.quotas(), s.resources, window).lines(p)
	fmt.Fprintf(out,
		"A month of 30 days of all syncs, as the second half was: %d regions, %s quotas each, a cycle every "+
			"%v.\n\n",
		s.regions, texttable.Count(int64(s.quotas())), window)
	rows := [][]string{{"", "BY TRIGGER", "", "EVERY QUOTA IN EVERY CYCLE", ""}}
	for i := range by {
		rows = append(rows, []string{
			by[i].name, texttable.Count(int64(by[i].n)), by[i].cost(), texttable.Count(int64(all[i].n)), all[i].cost(),
		})
	}
	priced := p.String() != ""
	if priced {
		rows = append(rows, []string{"all", "", dollars(sum(by)), "", dollars(sum(all))})
	}
	if err := texttable.Write(out, "", "lrrrr", rows); err != nil {
		return err
	}
	if priced {
		fmt.Fprintf(out, "\nat the prices given: %s; what has no price counts as nothing\n", p)
		return nil
	}
	fmt.Fprintln(out, "\nno dollars without prices: give -price-write, -price-read, -price-put, -price-get")
	return nil
}

// dollars writes an amount.
func dollars(x float64) string {
	whole := int64(x)
	cents := int64((x-float64(whole))*100 + 0.5)
	if cents == 100 {
		whole, cents = whole+1, 0
	}
	return fmt.Sprintf("$%s.%02d", texttable.Count(whole), cents)
}
