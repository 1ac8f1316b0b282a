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

// board is what sluice top has found: of all buckets that it was told of, it keeps the rows that are to be printed.
type board struct {
	Table     string   `json:"table,omitempty"`
	Redis     string   `json:"redis,omitempty"`
	Prefix    string   `json:"prefix,omitempty"` // of keys in Redis
	Resource  string   `json:"resource"`
	Buckets   int      `json:"buckets"`              // looked at
	ReadUnits *float64 `json:"read_units,omitempty"` // of a table
	Seconds   float64  `json:"seconds"`
	Rows      []row    `json:"rows"` // nearest to their limits first

	most      int
	only      string // a limit; empty for all
	others    int    // entries of the index that are no bucket
	malformed int
	errs      []error         // of the first malformed ones
	seen      map[string]bool // names of limits
	strange   map[string]bool // what is stored that the schema does not have
}

// topRow is a limit of a bucket as it was when it was read.
type row struct {
	Entity    string  `json:"entity"`
	Root      string  `json:"root,omitempty"` // where its chain ends on a Redis cluster, if not with the entity
	Limit     string  `json:"limit"`
	Used      float64 `json:"used"` // share of the burst: above 1 in debt
	Available int64   `json:"available_milli"`
	Burst     int64   `json:"burst_milli"`
	FullIn    int64   `json:"full_in_ms"`
}

// add puts the buckets of page in their places.
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
				b.place(rowOf(found, l))
			}
		}
	}
}

// rowOf returns the row of a limit of a bucket.
func rowOf(b bucketstore.Bucket, l bucketstore.Limit) row {
	r := row{Entity: b.Entity, Limit: l.Name, Available: l.Available, Burst: l.Burst, FullIn: l.FullIn.Milliseconds()}
	if b.Root != b.Entity {
		r.Root = b.Root
	}
	used, burst := r.share()
	r.Used = float64(used) / float64(burst)
	return r
}

// place keeps r, if it is among the first, and drops who is not any more. Most rows are compared with the last one alone.
func (b *board) place(r row) {
	if len(b.Rows) == b.most && nearer(r, b.Rows[b.most-1]) > 0 {
		return
	}
	at, _ := slices.BinarySearchFunc(b.Rows, r, nearer)
	b.Rows = slices.Insert(b.Rows, at, r)
	b.Rows = b.Rows[:min(len(b.Rows), b.most)]
}

// share returns how much is used of how large a burst: all, of one of 0.
func (r row) share() (used, burst uint64) {
	if r.Burst <= 0 {
		return 1, 1
	}
	return uint64(bucket.Sub(r.Burst, r.Available)), uint64(r.Burst)
}

// nearer compares rows by the share that is used, exactly, the greater one first; then by name.
func nearer(x, y row) int {
	xUsed, xBurst := x.share()
	yUsed, yBurst := y.share()
	xHigh, xLow := bits.Mul64(xUsed, yBurst)
	yHigh, yLow := bits.Mul64(yUsed, xBurst)
	return cmp.Or(cmp.Compare(yHigh, xHigh), cmp.Compare(yLow, xLow), strings.Compare(x.Entity, y.Entity), strings.Compare(x.Limit, y.Limit), strings.Compare(x.Root, y.Root))
}

// names returns the names of limits that buckets have.
func (b *board) names() []string { return slices.Sorted(maps.Keys(b.seen)) }

// wrong is the error for malformed buckets: each of the first, and how many there are.
func (b *board) wrong() error {
	errs := slices.Clone(b.errs)
	if more := b.malformed - len(errs); more > 0 {
		errs = append(errs, fmt.Errorf("sluice: and %s more are malformed", format.Count(more)))
	}
	return errors.Join(errs...)
}

// write prints the rows and what it took to find them.
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
	_, err := fmt.Fprintf(w, "%s%s read in %s%s\n", &table, format.Quantity(b.Buckets, "bucket"), format.Span(took), cost)
	return err
}

// widest returns how long the longest line of text is.
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
			format.Tokens(r.Available), format.Tokens(r.Burst), format.FullIn(time.Duration(r.FullIn) * time.Millisecond),
		})
	}
	return texttable.Write(w, "", "lllrrrl", rows)
}

// titles names the entities of the rows, with the root where another row has the same entity under another.
func (b *board) titles() []string {
	names := make([]string, len(b.Rows))
	for i, r := range b.Rows {
		names[i] = r.Entity
		if slices.ContainsFunc(b.Rows, func(other row) bool { return other.Entity == r.Entity && other.Root != r.Root }) {
			names[i] += " under " + cmp.Or(r.Root, r.Entity)
		}
	}
	return names
}

// parts returns how many of n parts of the burst are used, rounded down: all of them are only where nothing is left.
func (r row) parts(n uint64) uint64 {
	used, burst := r.share()
	high, low := bits.Mul64(used, n)
	if high >= burst {
		return math.MaxUint64
	}
	parts, _ := bits.Div64(high, low, burst)
	return parts
}

// units writes read units, of which there are halves.
func units(n float64) string {
	text := texttable.Count(int64(n))
	if n != math.Trunc(n) {
		text += ".5"
	}
	return text
}
