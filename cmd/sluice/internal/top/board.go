package top

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// board is the result of sluice top. It keeps only the rows to print of all buckets that it has added.
type board struct {
	Table     string   `json:"table,omitempty"`
	Namespace string   `json:"namespace,omitempty"` // of the table
	Redis     string   `json:"redis,omitempty"`
	Prefix    string   `json:"prefix,omitempty"` // of keys in Redis
	Resource  string   `json:"resource"`
	Buckets   int      `json:"buckets"`              // that were read
	ReadUnits *float64 `json:"read_units,omitempty"` // of a table
	Seconds   float64  `json:"seconds"`
	Rows      []row    `json:"rows"` // most used first

	most      int
	only      string // a limit, or empty for all
	others    int    // index entries that are no buckets
	malformed int
	errs      []error         // about the first malformed buckets
	seen      map[string]bool // names of limits
	strange   map[string]bool // stored, but not in the schema
}

// row is a limit of a bucket at the time of the read.
type row struct {
	Entity    string  `json:"entity"`
	Root      string  `json:"root,omitempty"` // the last entity of its chain on a Redis cluster, if another one
	Limit     string  `json:"limit"`
	Used      float64 `json:"used"` // portion of the burst: above 1 in debt
	Available int64   `json:"available_milli"`
	Burst     int64   `json:"burst_milli"`
	FullIn    int64   `json:"full_in_ms"`

	Held  []bucketstore.HoldJSON `json:"held,omitempty"` // by open leases
	Money *bucketstore.MoneyJSON `json:"money,omitempty"`

	unit    string // the currency of a limit of money, else empty
	untimed string // stands for FullIn: the slots taken of an in-flight limit, or that it is prepaid; else empty
	prepaid bool
}

// add adds the buckets of a page.
func (b *board) add(page bucketstore.Page) {
	b.Buckets += len(page.Buckets)
	if b.ReadUnits != nil {
		*b.ReadUnits += page.Units
	}
	b.others += page.Others
	b.malformed += len(page.Malformed)
	b.errs = append(b.errs, page.Malformed[:min(len(page.Malformed), format.First-len(b.errs))]...)
	for _, what := range page.Strange {
		b.strange[what] = true
	}
	for _, found := range page.Buckets {
		for _, l := range found.Limits {
			b.seen[l.Name] = true
			if b.only == "" || b.only == l.Name {
				b.insert(rowOf(found, l))
			}
		}
	}
}

// rowOf returns the row of a limit of a bucket.
func rowOf(b bucketstore.Bucket, l bucketstore.Limit) row {
	r := row{Entity: b.Entity, Limit: l.Name, Available: l.Available, Burst: l.Burst,
		FullIn: l.FullIn.Milliseconds(), Held: l.HeldJSON(), Money: l.MoneyJSON(), unit: l.Unit}
	switch {
	case l.InFlight():
		r.untimed = l.Slots()
	case l.Prepaid():
		r.untimed, r.prepaid = prepaid, true
	}
	if b.Root != b.Entity {
		r.Root = b.Root
	}
	used, burst := r.used()
	r.Used = float64(used) / float64(burst)
	return r
}

// insert keeps r if it is among the first, and drops the row after the last. Most rows are compared with
// the last row only.
func (b *board) insert(r row) {
	if len(b.Rows) == b.most && compareRows(r, b.Rows[b.most-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(b.Rows, r, compareRows)
	b.Rows = slices.Insert(b.Rows, at, r)
	b.Rows = b.Rows[:min(len(b.Rows), b.most)]
}

// prepaid stands in place of the time until a limit is full.
const prepaid = "prepaid"

// used returns the used tokens and the burst. A burst of 0 counts as used up, and one that grants exceed as
// unused. Of a prepaid limit, nobody knows what it began with and was granted: it is used up, or not.
func (r row) used() (used, burst uint64) {
	switch {
	case r.prepaid && r.Available > 0:
		return 0, 1
	case r.prepaid, r.Burst <= 0:
		return 1, 1
	}
	return uint64(max(0, bucket.Sub(r.Burst, r.Available))), uint64(r.Burst)
}

// compareRows orders rows by the exact used portion, the largest first, and then by name.
func compareRows(x, y row) int {
	xUsed, xBurst := x.used()
	yUsed, yBurst := y.used()
	xHigh, xLow := bits.Mul64(xUsed, yBurst)
	yHigh, yLow := bits.Mul64(yUsed, xBurst)
	return cmp.Or(cmp.Compare(yHigh, xHigh), cmp.Compare(yLow, xLow), strings.Compare(x.Entity, y.Entity),
		strings.Compare(x.Limit, y.Limit), strings.Compare(x.Root, y.Root))
}

// names returns the sorted names of the limits that buckets have.
func (b *board) names() []string { return slices.Sorted(maps.Keys(b.seen)) }

// wrong returns the error for malformed buckets: the first ones and the number of others.
func (b *board) wrong() error {
	errs := slices.Clone(b.errs)
	if more := b.malformed - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("sluice: and %s more are malformed", format.Count(more)))
	}
	return errors.Join(errs...)
}

// write prints the rows, the number of buckets and the cost of the read.
func (b *board) write(w io.Writer, bar term.Bar) error {
	var table strings.Builder
	if err := b.table(&table, bar); err != nil {
		return err
	}
	if over := widest(table.String()) - term.ScreenWidth; bar.Screen && over > 0 {
		table.Reset()
		bar.Width = max(bar.Width-over, term.NarrowestBar)
		if err := b.table(&table, bar); err != nil {
			return err
		}
	}
	took := time.Duration(b.Seconds * float64(time.Second))
	if took = took.Round(time.Millisecond); took > time.Second {
		took = took.Round(100 * time.Millisecond)
	}
	cost := ""
	if b.ReadUnits != nil {
		cost = ", for " + units(*b.ReadUnits) + " read units"
	}
	_, err := fmt.Fprintf(w, "%s%s read in %s%s\n", &table, format.Quantity(b.Buckets, "bucket"),
		format.Span(took), cost)
	return err
}

// widest returns the length of the longest line of text.
func widest(text string) (most int) {
	for line := range strings.Lines(text) {
		most = max(most, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")))
	}
	return most
}

// table prints the rows.
func (b *board) table(w io.Writer, bar term.Bar) error {
	rows := [][]string{{"ENTITY", "LIMIT", "", "USED", "AVAILABLE", "BURST", "FULL IN"}}
	names := b.titles()
	for i, r := range b.Rows {
		rows = append(rows, []string{
			names[i], r.Limit, bar.Of(r.parts(uint64(bar.Width))), strconv.FormatUint(r.parts(100), 10) + "%",
			format.Number(r.Available, r.unit), format.Number(r.Burst, r.unit), r.fullIn(),
		})
	}
	return texttable.Write(w, "", "lllrrrl", rows)
}

// fullIn says when the limit is full. Nobody knows when a call ends, or when credits are granted.
func (r row) fullIn() string {
	if r.untimed != "" {
		return r.untimed
	}
	return format.FullIn(time.Duration(r.FullIn) * time.Millisecond)
}

// titles names the entities of the rows. It adds the root if rows have the same entity under several roots.
func (b *board) titles() []string {
	names := make([]string, len(b.Rows))
	for i, r := range b.Rows {
		names[i] = term.Quote(r.Entity)
		if slices.ContainsFunc(b.Rows, func(other row) bool {
			return other.Entity == r.Entity &&
				other.Root != r.Root
		}) {
			names[i] += " under " + term.Quote(cmp.Or(r.Root, r.Entity))
		}
	}
	return names
}

// parts returns how many of n parts of the burst are used, rounded down. It returns n or more only if
// nothing is left.
func (r row) parts(n uint64) uint64 {
	used, burst := r.used()
	high, low := bits.Mul64(used, n)
	if high >= burst {
		return math.MaxUint64
	}
	parts, _ := bits.Div64(high, low, burst)
	return parts
}

// units writes read units, which may be halves.
func units(n float64) string {
	text := texttable.Count(int64(n))
	if n != math.Trunc(n) {
		text += ".5"
	}
	return text
}
