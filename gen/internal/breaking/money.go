package breaking

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// unitOf returns the currency of a limit, or the word tokens.
func unitOf(l *schema.Limit) string {
	if l.Currency == "" {
		return "tokens"
	}
	return l.Currency
}

func moneyChanged(c *comparison) {
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			if was.Currency == is.Currency {
				continue
			}
			c.report(is.Pos, schema.Place(n.Name, is.Name),
				"limit %s of %s was in %s and is in %s: balances, overrides and usage in the table are numbers of %s, "+
					"and nothing is converted; give the new limit a name of its own, and write %s into removed",
				is.Name, n.Name, unitOf(was), unitOf(is), unitOf(was), is.Name)
		}
	}
}

// usages calls changed with each usage that a resource had before and has now. A usage is its field, as
// callers set that: a name may change beside go_name.
func (c *comparison) usages(changed func(n *schema.Resource, was, is *schema.Usage)) {
	for o, n := range c.resources() {
		for _, is := range n.Usage {
			sameField := func(was *schema.Usage) bool { return was.GoName == is.GoName }
			if i := slices.IndexFunc(o.Usage, sameField); i >= 0 {
				changed(n, o.Usage[i], is)
			}
		}
	}
}

// usage returns the usage of a name, nil if there is none.
func usage(r *schema.Resource, name string) *schema.Usage {
	i := slices.IndexFunc(r.Usage, func(u *schema.Usage) bool { return u.Name == name })
	if i < 0 {
		return nil
	}
	return r.Usage[i]
}

func priceChanged(c *comparison) {
	price := func(u *schema.Usage) string {
		if u.Price == 0 {
			return "none"
		}
		return u.Written()
	}
	c.usages(func(n *schema.Resource, was, is *schema.Usage) {
		if was.Price == is.Price {
			return
		}
		c.report(is.PricePos, n.Name,
			"price of usage %s of %s is %s instead of %s: each process charges by the prices that it was built with, "+
				"so that both count until all run this version; budgets last for more or fewer calls, so see first that "+
				"their capacity still fits", is.Name, n.Name, price(is), price(was))
	})
}

func usageRemoved(c *comparison) {
	for o, n := range c.resources() {
		for _, was := range o.Usage {
			kept := func(u *schema.Usage) bool { return u.GoName == was.GoName }
			if slices.ContainsFunc(n.Usage, kept) {
				continue
			}
			cure := "remove it from callers, or keep it without a price"
			if usage(n, was.Name) != nil {
				cure = fmt.Sprintf("write go_name: %s to keep it", was.GoName)
			}
			c.report(n.Pos, n.Name, "field %s of %sUsage is gone, with usage %s of %s: callers that set it do not "+
				"compile; %s", was.GoName, n.GoName, was.Name, n.Name, cure)
		}
	}
}

func countsChanged(c *comparison) {
	fields := func(r *schema.Resource, l *schema.Limit) (fields []string) {
		for _, name := range l.Counts {
			fields = append(fields, usage(r, name).GoName)
		}
		slices.Sort(fields)
		return fields
	}
	sorted := func(l *schema.Limit) []string { return slices.Sorted(slices.Values(l.Counts)) }
	list := func(names []string) string {
		if names == nil {
			return "nothing"
		}
		return "[" + strings.Join(names, ", ") + "]"
	}
	for o, n := range c.resources() {
		for i, j := range limits(o, n) {
			was, is := o.Limits[i], n.Limits[j]
			before, after := fields(o, was), fields(n, is)
			if slices.Equal(before, after) || was.Currency != is.Currency {
				continue
			}
			if a, b := sorted(was), sorted(is); !slices.Equal(a, b) { // otherwise fields have changed places
				before, after = a, b
			}
			c.report(is.Pos, schema.Place(n.Name, is.Name),
				"limit %s of %s counts %s instead of %s: calls whose cost comes from usage take other tokens of it; "+
					"see first that its capacity still fits, or keep counts",
				is.Name, n.Name, list(after), list(before))
		}
	}
}
