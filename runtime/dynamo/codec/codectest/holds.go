package codectest

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// holds compares each path with what it must say of each limit that counts holds: every update moves tokens
// between cells, and names the epochs that they are of. Normal and Reshape store the lowest epoch that is
// counted from then on.
func (c *testCase) holds() []error {
	var errs []error
	w := sample(c, c.kind)
	for _, p := range builders(c)[1:] { // Create puts the item: see image
		p.build(w)
		cond, update := unbroken(w.Cond), unbroken(w.Update)
		for n, limit := range c.limits {
			if !c.shapes[n].held {
				continue
			}
			at := c.at[n]
			h, want := w.Holds[at], required(p.name, limit)
			for _, clause := range want.clauses {
				if !names(cond, clause) {
					errs = append(errs, fmt.Errorf("%s does not hold on to what %s counts: want %s", p.name, limit, clause))
				}
			}
			for _, action := range want.actions {
				if !names(update, action) {
					errs = append(errs, fmt.Errorf("%s does not count what it takes of %s: want %s", p.name, limit, action))
				}
			}
			if set := fmt.Sprintf("b_%s_e = :%s_e", limit, limit); want.sweeps != names(update, set) {
				errs = append(errs, fmt.Errorf("%s is to store the epoch of %s: %v", p.name, limit, want.sweeps))
			}
			for suffix, v := range want.values(h, w.Image.Balances[at].Epoch, w.Fill[at]-w.Cost[at]) {
				placeholder := ":" + limit + "_" + suffix
				if got := text(w.Values[placeholder]); got != text(codec.N(v)) {
					errs = append(errs, fmt.Errorf("%s gives %s %s, want %d", p.name, placeholder, got, v))
				}
			}
		}
	}
	return errs
}

// unbroken returns an expression on one line.
func unbroken(expression string) string { return strings.Join(strings.Fields(expression), " ") }

// requirement is what a path must say of a limit that counts holds.
type requirement struct {
	clauses, actions []string
	sweeps           bool // it stores the lowest epoch that is counted
	bounds           bool // it has bounds of the cells
}

// required returns the requirement of a path for a limit.
func required(path, limit string) requirement {
	of := func(text string) string { return strings.ReplaceAll(text, "<limit>", limit) }
	r := requirement{actions: []string{of("b_<limit>_h0 :<limit>_d0"), of("b_<limit>_h1 :<limit>_d1")}}
	switch path {
	case "Normal":
		r.sweeps, r.bounds = true, true
		r.clauses = []string{
			of("b_<limit>_e = :<limit>_e0"),
			of("b_<limit>_h0 BETWEEN :<limit>_h0lo AND :<limit>_h0hi"),
			of("b_<limit>_h1 BETWEEN :<limit>_h1lo AND :<limit>_h1hi"),
		}
	case "Reshape":
		r.sweeps = true
		r.clauses = []string{of("(attribute_not_exists(b_<limit>_e) OR b_<limit>_e = :<limit>_e0)")}
	default:
		r.clauses = []string{of("b_<limit>_e BETWEEN :<limit>_e0 AND :<limit>_e1")}
	}
	return r
}

// values returns the values of a limit's placeholders, by suffix. seen is the epoch of the image, and net is
// what the balance changes by.
func (r requirement) values(h bucket.Hold, seen, net int64) map[string]int64 {
	values := map[string]int64{"net": net, "d0": h.Change[0], "d1": h.Change[1], "e0": h.First, "e1": h.Last}
	if r.sweeps {
		delete(values, "e1")
		values["e"], values["e0"] = h.Epoch, seen
	}
	if r.bounds {
		values["h0lo"], values["h0hi"] = h.Lo[0], h.Hi[0]
		values["h1lo"], values["h1hi"] = h.Lo[1], h.Hi[1]
	}
	return values
}
