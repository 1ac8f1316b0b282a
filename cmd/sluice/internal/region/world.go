package region

import (
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region"
)

// describeWorld prints all regions, and their quotas of each limit, summed over entities.
func describeWorld(p program.Env, w worldSeen, summaries []region.Summary) error {
	rows := [][]string{{"REGION", "STATE", "AGE", "EPOCH", "SEQUENCE", "ENTITIES"}}
	for _, site := range w.sites {
		row := []string{site.name, site.shownState(), "-", "-", "-", "-"}
		if s := site.snap; s != nil {
			row = []string{
				site.name, site.shownState(), age(w.age(site)), texttable.Count(s.Epoch), texttable.Count(s.Sequence),
				texttable.Count(int64(len(s.Entries))),
			}
		}
		rows = append(rows, row)
	}
	if err := texttable.Write(p.Stdout, "", "llrrrr", rows); err != nil {
		return err
	}
	if len(summaries) == 0 {
		p.Say("no region has a quota yet\n")
		return nil
	}
	head, align := []string{"LIMIT"}, "l"
	for _, site := range w.sites {
		head, align = append(head, site.name), align+"r"
	}
	rows = [][]string{append(head, "ON THE WAY", "IN ALL", "OF", "LEFT")}
	for _, sum := range sumsOf(summaries) {
		row := []string{sum.Resource + " " + sum.Limit}
		for _, held := range sum.Held {
			row = append(row, texttable.Count(held))
		}
		rows = append(rows, append(row, texttable.Count(sum.InTransit), texttable.Count(sum.Sum()),
			texttable.Count(sum.Whole), format.Tokens(sum.Left)))
	}
	return texttable.Write(p.Stdout, "", align+"rrrr", rows)
}

// sumsOf adds summaries up by resource and limit, in the order of their first occurrence.
func sumsOf(summaries []region.Summary) (sums []region.Summary) {
	at := map[string]int{}
	for _, s := range summaries {
		name := s.Resource + " " + s.Limit
		i, ok := at[name]
		if !ok {
			i = len(sums)
			at[name] = i
			sums = append(sums, region.Summary{Resource: s.Resource, Limit: s.Limit,
				Held: make([]int64, len(s.Held))})
		}
		sum := &sums[i]
		for j, held := range s.Held {
			sum.Held[j] += held
		}
		sum.InTransit += s.InTransit
		sum.Whole += s.Whole
		sum.Left = bucket.Add(sum.Left, s.Left)
	}
	return sums
}

// describeEntity prints the regions' quotas of one entity's limits, as bars.
func describeEntity(p program.Env, w worldSeen, entity string, summaries []region.Summary) error {
	if len(summaries) == 0 {
		p.Note("%s\n", w.none(entity))
		return nil
	}
	bar := term.NewBar(term.IsTerminal(p.Stdout))
	for i, s := range summaries {
		if i == 0 || summaries[i-1].Resource != s.Resource {
			p.Say("%s on %s\n", term.Quote(entity), term.Quote(s.Resource))
		}
		rows := [][]string{{s.Limit, "", "HELD", "IN USE", "RATE", "LEFT"}}
		for j, site := range w.sites {
			row := []string{site.name, bar.Of(parts(s.Held[j], s.Whole, bar.Width)), texttable.Count(s.Held[j]), "-",
				"-", "-"}
			if h := s.Known[j]; h != nil {
				row = append(row[:3], texttable.Count(h.Quota), format.Tokens(h.Rate)+"/s", format.Tokens(h.TK))
			}
			if site.state != region.Live {
				row = append(row, site.shownState())
			}
			rows = append(rows, row)
		}
		rows = append(rows,
			[]string{"on the way", "", texttable.Count(s.InTransit)},
			[]string{"in all", "", texttable.Count(s.Sum()), fmt.Sprintf("of %s", texttable.Count(s.Whole)), "",
				format.Tokens(s.Left)})
		if err := texttable.Write(p.Stdout, "  ", "llrrrrl", rows); err != nil {
			return err
		}
	}
	return nil
}

// parts returns how many parts of a bar n of whole are: at least one if n is above 0.
func parts(n, whole int64, width int) uint64 {
	if n <= 0 || whole <= 0 {
		return 0
	}
	return uint64(max(1, int64(float64(n)/float64(whole)*float64(width)+0.5)))
}

// worldJSON prints everything as one object.
func worldJSON(p program.Env, w worldSeen, summaries []region.Summary, costs []regionCosts) error {
	type site struct {
		Region   string  `json:"region"`
		State    string  `json:"state"`
		Age      float64 `json:"age_seconds"`
		Epoch    int64   `json:"epoch"`
		Sequence int64   `json:"sequence"`
		Entities int     `json:"entities"`
	}
	type limit struct {
		Entity    string           `json:"entity"`
		Resource  string           `json:"resource"`
		Limit     string           `json:"limit"`
		Held      map[string]int64 `json:"held"`
		InTransit int64            `json:"on_the_way"`
		Sum       int64            `json:"in_all"`
		Whole     int64            `json:"of"`
		Left      int64            `json:"left"`
	}
	out := struct {
		Regions []site        `json:"regions"`
		Limits  []limit       `json:"limits"`
		Costs   []regionCosts `json:"costs,omitempty"`
	}{[]site{}, []limit{}, costs}
	for _, from := range w.sites {
		one := site{Region: from.name, State: from.shownState()}
		if s := from.snap; s != nil {
			one.Age, one.Epoch, one.Sequence, one.Entities = w.age(from).Seconds(), s.Epoch, s.Sequence, len(s.Entries)
		}
		out.Regions = append(out.Regions, one)
	}
	for _, s := range summaries {
		one := limit{Entity: s.Entity, Resource: s.Resource, Limit: s.Limit, Held: map[string]int64{},
			InTransit: s.InTransit, Sum: s.Sum(), Whole: s.Whole, Left: s.Left / bucket.Milli}
		for i, held := range s.Held {
			one.Held[w.sites[i].name] = held
		}
		out.Limits = append(out.Limits, one)
	}
	return p.JSON(out)
}
