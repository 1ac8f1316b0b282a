package region

import (
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/region"
)

// The parts of a cycle in JSON.
type (
	// moved is the quota of a limit before and after a write, in tokens.
	moved struct {
		Limit   string         `json:"limit"`
		Trigger region.Trigger `json:"trigger"`
		From    int64          `json:"from"`
		To      int64          `json:"to"`
		Of      int64          `json:"of"`
	}
	// write is a write of a quota item.
	write struct {
		Entity   string  `json:"entity"`
		Resource string  `json:"resource"`
		Limits   []moved `json:"limits"`
		Done     bool    `json:"done"`
	}
	// peer is another region.
	peer struct {
		Region string       `json:"region"`
		State  region.State `json:"state"`
		Age    float64      `json:"age_seconds"`
		Error  string       `json:"error,omitempty"`
	}
)

// reportJSON prints a cycle as JSON on a line.
func reportJSON(p program.Env, r *region.Report) error {
	out := struct {
		Region    string    `json:"region"`
		At        time.Time `json:"at"`
		Epoch     int64     `json:"epoch"`
		Begins    string    `json:"epoch_begins,omitempty"`
		Waits     time.Time `json:"waits_until,omitzero"`
		Sequence  int64     `json:"sequence"`
		Quotas    int       `json:"shares"`
		Heartbeat bool      `json:"heartbeat"`
		Operated  int       `json:"operated"`
		Writes    []write   `json:"writes"`
		Failed    []string  `json:"failed"`
		Peers     []peer    `json:"peers"`
	}{
		Region: r.Region, At: r.At.UTC(), Epoch: r.Epoch, Begins: r.Begins, Waits: r.Waits.UTC(),
		Sequence: r.Sequence, Quotas: r.Quotas, Heartbeat: r.Beating, Operated: r.Operated,
		Writes: []write{}, Failed: []string{}, Peers: []peer{},
	}
	for _, w := range r.Writes {
		one := write{Entity: w.Entity, Resource: w.Resource, Done: w.Done}
		for _, m := range w.Limits {
			one.Limits = append(one.Limits, moved{m.Limit, m.Trigger, m.From, m.To, m.Whole})
		}
		out.Writes = append(out.Writes, one)
	}
	for _, err := range r.Failed {
		out.Failed = append(out.Failed, err.Error())
	}
	for _, from := range r.Peers {
		one := peer{Region: from.Region, State: from.State, Age: from.Age.Seconds()}
		if from.Err != nil {
			one.Error = from.Err.Error()
		}
		out.Peers = append(out.Peers, one)
	}
	return p.JSONLine(out)
}

// describeCycle prints what a cycle has done, or would do: the other regions, and each write with its
// trigger.
func describeCycle(p program.Env, r *region.Report, planned bool) error {
	verb := "written"
	switch {
	case r.Begins != "":
		begins := "has begun"
		if planned {
			begins = "would begin"
		}
		p.Say("%s: epoch %s %s: %s\n  until the region has published, in the next cycles, its quota is what "+
			"every region keeps\n",
			r.Region, texttable.Count(r.Epoch), begins, r.Begins)
	case !r.Waits.IsZero():
		p.Say("%s: epoch %s has begun; nothing is published or written before %s, when no process uses an older "+
			"quota\n",
			r.Region, texttable.Count(r.Epoch), r.Waits.UTC().Format(time.RFC3339))
	case planned:
		verb = "to be written"
		p.Say("%s: %s\n", r.Region, format.Quantity(r.Quotas, "quota"))
	default:
		beat := "renewed"
		if !r.Beating {
			beat = "not renewed"
		}
		p.Say("%s: %s published in snapshot %s, heartbeat %s\n", r.Region, format.Quantity(r.Quotas, "quota"),
			texttable.Count(r.Sequence), beat)
	}
	rows := [][]string{{"REGION", "STATE", "AGE"}}
	for _, peer := range r.Peers {
		row := []string{peer.Region, string(peer.State), "-"}
		if peer.State == region.Live || peer.Age > 0 {
			row[2] = age(peer.Age)
		}
		if peer.Err != nil {
			row = append(row, peer.Err.Error())
		}
		rows = append(rows, row)
	}
	if len(rows) > 1 {
		if err := texttable.Write(p.Stdout, "  ", "llrl", rows); err != nil {
			return err
		}
	}
	if r.Begins != "" || !r.Waits.IsZero() {
		return nil
	}
	return describeWrites(p, r, planned, verb)
}

// describeWrites prints the writes of quotas of a cycle, each with its trigger.
func describeWrites(p program.Env, r *region.Report, planned bool, verb string) error {
	rows := [][]string{{"ENTITY", "RESOURCE", "LIMIT", "TRIGGER", "FROM", "TO", "OF"}}
	for _, w := range r.Writes {
		for _, m := range w.Limits {
			row := []string{w.Entity, w.Resource, m.Limit, string(m.Trigger), texttable.Count(m.From),
				texttable.Count(m.To), texttable.Count(m.Whole)}
			if !w.Done && !planned {
				row = append(row, "not written")
			}
			rows = append(rows, row)
		}
	}
	if len(rows) > 1 {
		if err := texttable.Write(p.Stdout, "  ", "llllrrrl", rows); err != nil {
			return err
		}
	}
	n := doneOf(r)
	if planned {
		n = len(r.Writes)
	}
	p.Say("%s %s", format.Quantity(n, "quota item"), verb)
	if r.Operated > 0 {
		p.Say(", %s overrides of operators unchanged", texttable.Count(int64(r.Operated)))
	}
	p.Say("\n")
	return nil
}

// age writes an age, rounded to seconds.
func age(d time.Duration) string { return format.Span(d.Round(time.Second)) }
