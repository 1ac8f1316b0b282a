package emit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// usage prints the struct of what a call consumes, and its Cost.
func usage(f *file, r *model.Resource) {
	fields := []jen.Code{
		jen.Id("_").Struct().Comment("// forces field names"),
		jen.Line(),
	}
	for _, u := range r.Consumes {
		fields = append(fields, described(jen.Id(u.Field).Int64(), apart(u.Doc))...)
	}
	f.decl(fmt.Sprintf("%s is what one call on %s consumes. Usages do not overlap.", r.Usage, r.Name),
		jen.Type().Id(r.Usage).Struct(fields...))

	var body, values []jen.Code
	if slices.ContainsFunc(r.Limits, func(l *model.Limit) bool { return l.Currency != "" }) {
		body = append(body, define("sum", total(r)))
	}
	for _, l := range r.Limits {
		switch {
		case l.Currency != "":
			values = append(values, pair(l.Field, jen.Id("sum")))
		case l.Counts != nil:
			values = append(values, pair(l.Field, counted(l)))
		}
	}
	cost := jen.Id(r.Cost).Add(braces(values, few(4, len("\treturn {}")+len(r.Cost), len(": sum, "),
		limitFields(r))))
	var prices []jen.Code
	if r.Template != nil && r.Template.Prices != "" {
		prices = append(prices, jen.Id("prices").Id(r.Template.Prices))
	}
	f.decl(costDoc(r), jen.Func().Params(jen.Id("u").Id(r.Usage)).Id("Cost").Params(prices...).Id(r.Cost).Block(
		append(body, jen.Return(cost))...))
}

// total is the sum of all usages by their prices.
func total(r *model.Resource) *jen.Statement {
	sum := jen.Qual(moneyPath, "Total").Values()
	for i, u := range r.Consumes {
		price := num(u.Price)
		if r.Template != nil {
			price = jen.Id("prices").Dot("of").Index(jen.Lit(i))
		}
		sum.Op(".").Line().Id("Add").Call(jen.Id("u").Dot(u.Field), price)
	}
	return sum.Op(".").Line().Id("Amount").Call()
}

// counted is the sum of the usages that a limit counts.
func counted(l *model.Limit) *jen.Statement {
	return jen.Qual(storePath, "Sum").CallFunc(func(g *jen.Group) {
		for _, u := range l.Counts {
			g.Id("u").Dot(u.Field)
		}
	})
}

// costDoc is the doc comment of Cost: the limits that it fills in, the others, and the prices.
func costDoc(r *model.Resource) string {
	var sums, budgets, others []string
	for _, l := range r.Limits {
		switch {
		case l.Currency != "":
			budgets = append(budgets, l.Field)
		case l.Counts != nil:
			var counts []string
			for _, u := range l.Counts {
				counts = append(counts, u.Field)
			}
			sums = append(sums, l.Field+" is "+strings.Join(counts, " + "))
		default:
			others = append(others, l.Field)
		}
	}
	s := "Cost returns the cost of u in each limit that counts it."
	if len(budgets) > 0 {
		is := "is"
		if len(budgets) > 1 {
			is = "are"
		}
		by := "their prices"
		if r.Template != nil {
			by = "the prices of the name"
		}
		s += fmt.Sprintf(" %s %s the sum of all usages by %s, in %s, rounded up once to a billionth.",
			words.List(budgets, "and"), is, by, r.Currency)
	}
	if len(sums) > 0 {
		s += " " + strings.Join(sums, ". ") + "."
	}
	if len(others) > 0 {
		s += " It leaves out " + words.List(others, "and") + "."
	}
	s += " Cost cannot fail: a negative count, or one that is too large, gives a cost that Acquire and Settle " +
		"refuse with an *InvalidError." + lacking(r)
	if len(budgets) == 0 {
		return s
	}
	if r.Template != nil {
		return s
	}
	s += "\n\nPrices in " + r.Currency + ":\n"
	for _, u := range r.Consumes {
		price := "none"
		if u.Price > 0 {
			price = words.Price(u.Price)
		}
		s += fmt.Sprintf("\n  - %s: %s", u.Field, price)
	}
	return s
}

// lacking says for which kinds a Cost has limits to be set to 0: no bucket that their calls charge has these,
// and a cost of them is refused. It is "" if there is no such kind.
func lacking(r *model.Resource) (s string) {
	for _, c := range r.Charged {
		var fields []string
		for _, l := range r.Limits {
			chained := func(o *model.Charged) bool {
				return (o == c || slices.Contains(c.Along, o.Kind)) && !o.Numbers[l.Index].Absent()
			}
			if (l.Currency != "" || l.Counts != nil) && !slices.ContainsFunc(r.Charged, chained) {
				fields = append(fields, l.Field)
			}
		}
		if fields != nil {
			s += fmt.Sprintf(" For %s, set %s to 0 first: its calls charge no such limit.", article(c.Kind.Type),
				words.List(fields, "and"))
		}
	}
	return s
}
