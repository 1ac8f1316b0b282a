package limits

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// Number is a number of a request, as it was written.
type Number struct {
	Name   string // of a limit, or of a usage
	Text   string
	Quoted bool // it is a text, as money is
}

// Cost returns numbers, which are named by limits, as a cost. Limits without a number cost their per_call.
// The error is a *runtime.InvalidError.
func (r *Resource) Cost(numbers []Number) ([]int64, error) {
	cost := make([]int64, len(r.Spec.Limits))
	for _, n := range numbers {
		i := slices.Index(r.Spec.Limits, n.Name)
		if i < 0 {
			return nil, r.invalid("cost", n.Name, "is no limit: %s", gen.Cure(n.Name, r.Spec.Limits))
		}
		var wrong string
		if r.Spec.Unit(i) != "" {
			cost[i], wrong = amount(n)
		} else {
			cost[i], wrong = count(n)
		}
		if wrong != "" {
			return nil, r.invalid("cost of "+r.Spec.Limits[i], n.Text, "%s", wrong)
		}
	}
	return cost, nil
}

// Usages returns the names of what a call consumes. There are none if limits.yaml does not say.
func (r *Resource) Usages() []string {
	names := make([]string, len(r.usage))
	for i, u := range r.usage {
		names[i] = u.Name
	}
	return names
}

// CostOf returns the cost of what a call of an entity of a kind consumes. Numbers are named by usages. Limits
// that do not count usage cost their per_call, and those that the call does not charge cost nothing. The
// error is a *runtime.InvalidError.
func (r *Resource) CostOf(kind int, numbers []Number) ([]int64, error) {
	names := r.Usages()
	if len(names) == 0 {
		return nil, r.invalid("usage", "", "has no meaning, since limits.yaml has no usage for it: write the cost")
	}
	counts := make([]int64, len(names))
	for _, n := range numbers {
		i := slices.Index(names, n.Name)
		if i < 0 {
			return nil, r.invalid("usage", n.Name, "is no usage: %s", gen.Cure(n.Name, names))
		}
		var wrong string
		if counts[i], wrong = count(n); wrong != "" {
			return nil, r.invalid("usage "+n.Name, n.Text, "%s", wrong)
		}
	}
	cost := make([]int64, len(r.Spec.Limits))
	total := money.Total{}
	for i, u := range r.usage {
		total = total.Add(counts[i], money.Price(u.Price))
		for _, l := range u.Counts {
			cost[l] = store.Sum(cost[l], counts[i])
		}
	}
	for i := range cost {
		if r.Spec.Unit(i) != "" {
			cost[i] = int64(total.Amount())
		}
		if !r.Spec.Charges(kind, i) {
			cost[i] = 0
		}
	}
	return cost, nil
}

// count reads a whole number.
func count(n Number) (int64, string) {
	if n.Quoted {
		return 0, "is a text: write a number without quotes"
	}
	value, err := strconv.ParseInt(n.Text, 10, 64)
	switch {
	case strings.HasPrefix(n.Text, "-"):
		return 0, "is negative: to give tokens back, settle for less or release the lease"
	case err != nil && strings.ContainsAny(n.Text, ".eE"):
		return 0, "is no whole number: write digits alone"
	case err != nil:
		return 0, "is too large: write a smaller number"
	}
	return value, ""
}

// amount reads money, in nano-units.
func amount(n Number) (int64, string) {
	if !n.Quoted {
		return 0, `is a number, which is a float to many programs: write money as a text, such as "0.25"`
	}
	value, err := money.Parse(n.Text)
	if wrong, ok := err.(*money.ParseError); ok { //nolint:errorlint // Parse returns no other
		return 0, wrong.Reason
	}
	return int64(value), ""
}

// IsMoney reports whether a name is that of a limit of money.
func (r *Resource) IsMoney(limit string) bool {
	i := slices.Index(r.Spec.Limits, limit)
	return i >= 0 && r.Spec.Unit(i) != ""
}

// AppendNumber appends a number of the i-th limit as JSON has it: money is a text.
func (r *Resource) AppendNumber(dst []byte, i int, n int64) []byte {
	if r.Spec.Unit(i) == "" {
		return strconv.AppendInt(dst, n, 10)
	}
	dst = append(dst, '"')
	dst, _ = money.Amount(n).AppendText(dst) // it never fails
	return append(dst, '"')
}

// Limits returns the indexes of the limits that calls of entities of a kind charge, whatever parents the
// store has of them.
func (r *Resource) Limits(kind int) (all []int) {
	for i := range r.Spec.Limits {
		if r.Spec.Charges(kind, i) {
			all = append(all, i)
		}
	}
	return all
}

// enumerate joins names as prose: a, b and c.
func enumerate(names []string) string {
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

var _ runtime.Entity = (*Entity)(nil)
