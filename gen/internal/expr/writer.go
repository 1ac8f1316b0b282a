package expr

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// writer collects the text of one expression after the other, and the operands of both.
type writer struct {
	r   *model.Resource
	buf strings.Builder
	ops []Operand
	has map[string]bool // placeholders of ops
}

func newWriter(r *model.Resource) *writer { return &writer{r: r, has: make(map[string]bool)} }

// operand puts a placeholder on the list and returns it.
func (w *writer) operand(o Operand) string {
	if !w.has[o.Placeholder] {
		w.has[o.Placeholder] = true
		w.ops = append(w.ops, o)
	}
	return o.Placeholder
}

// shared returns the placeholder of a value of the bucket itself.
func (w *writer) shared(placeholder string, v Value) string {
	return w.operand(Operand{Placeholder: placeholder, Value: v})
}

// of returns the placeholder of a value of the i-th limit.
func (w *writer) of(i int, v Value) string {
	l := w.r.Limits[i]
	return w.operand(Operand{Placeholder: ":" + l.Name + "_" + v.suffix(), Value: v, Limit: l.Index})
}

// line starts a new line.
func (w *writer) line(format string, args ...any) {
	w.buf.WriteByte('\n')
	fmt.Fprintf(&w.buf, format, args...)
}

// width is the most columns of a line: 120 less the closing quote.
const width, indent = 119, "    "

// folded breaks the lines of text that are too long for code, unless the added blanks make text too long for
// DynamoDB.
func folded(text string) string {
	var lines []string
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > width {
			at := breakAt(line)
			if at == 0 {
				break
			}
			lines = append(lines, strings.TrimRight(line[:at], " "))
			line = indent + strings.TrimLeft(line[at:], " ")
		}
		lines = append(lines, line)
	}
	if f := strings.Join(lines, "\n"); len(f) <= MaxBytes {
		return f
	}
	return text
}

// breakAt returns the best index to break a line that is too long, 0 for none. It prefers a comma between
// actions, then an operator, then any comma.
func breakAt(line string) int {
	head := line[:width]
	depth, comma := 0, 0
	for i, c := range head {
		switch {
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			comma = i + 1
		}
	}
	if comma > 0 {
		return comma
	}
	for _, operator := range []string{" OR ", " + ", " AND "} {
		if at := strings.LastIndex(head, operator); at > len(indent) {
			return at
		}
	}
	return strings.LastIndexByte(head, ',') + 1
}

// more continues the clause on a new line.
func (w *writer) more(format string, args ...any) {
	w.buf.WriteByte(',')
	w.line(indent+format, args...)
}

// text returns the written text and clears it.
func (w *writer) text() string {
	defer w.buf.Reset()
	return folded(w.buf.String())
}

// path ends with the condition.
func (w *writer) path(names model.Path, update string) *Path {
	return &Path{Path: names, Update: update, Condition: w.text(), Operands: w.ops}
}

// stamp is the assignments of every update. ttl is a reserved word.
func (w *writer) stamp() string {
	return fmt.Sprintf("op = %s, #ttl = %s", w.shared(":op", Op), w.shared(":ttl", TTL))
}

// guard is the part of the condition that every charge has: the bucket has the image's version, and this
// write was not applied before.
func (w *writer) guard() string {
	return fmt.Sprintf("cv = %s AND op <> %s", w.shared(":cv", VersionSeen), w.shared(":op", Op))
}

// set starts the SET clause.
func (w *writer) set(actions ...string) { w.line("SET %s", strings.Join(actions, ", ")) }

// stored is the assignments of every window's end, and of the lowest epoch that each limit counts. They are
// those of the image, unless the write opens the next window or sweeps.
func (w *writer) stored() []string {
	var all []string
	for i, l := range w.r.Limits {
		if l.Window != nil {
			all = append(all, fmt.Sprintf("%s = %s", l.Attrs.Ends, w.of(i, Ends)))
		}
		if l.Holds() {
			all = append(all, fmt.Sprintf("%s = %s", l.Attrs.Epoch, w.of(i, Epoch)))
		}
	}
	return all
}

// sameWindow is the clause that the i-th limit is still in the window of the image. Each write has it for
// each limit with windows, asked for or not. Else a writer with an old image could set a ttl before the end
// of the new window, and the bucket could be deleted in that window.
func (w *writer) sameWindow(i int) string {
	return fmt.Sprintf("%s = %s", w.r.Limits[i].Attrs.Ends, w.of(i, EndsSeen))
}

// sameEpoch is the clause that nobody has swept the i-th limit since the image.
func (w *writer) sameEpoch(i int) string {
	return fmt.Sprintf("%s = %s", w.r.Limits[i].Attrs.Epoch, w.of(i, EpochSeen))
}

// counted is the clause that the i-th limit still counts the epochs of the holds that a write moves, and that
// their cells have no other epoch's.
func (w *writer) counted(i int) string {
	return fmt.Sprintf("%s BETWEEN %s AND %s", w.r.Limits[i].Attrs.Epoch, w.of(i, EpochLo), w.of(i, EpochHi))
}

// swept is the clauses that nobody has swept the i-th limit since the image, and that each cell which the
// write empties is as seen. A cell that it does not empty has open bounds.
func (w *writer) swept(i int) string {
	a := w.r.Limits[i].Attrs
	return fmt.Sprintf("%s\nAND %s BETWEEN %s AND %s AND %s BETWEEN %s AND %s", w.sameEpoch(i),
		a.Cells[0], w.of(i, Cell0Lo), w.of(i, Cell0Hi), a.Cells[1], w.of(i, Cell1Lo), w.of(i, Cell1Hi))
}

// add changes the tokens of every limit by net, the consumption by the cost, and cells by what is taken and
// given back. A limit with windows or holds has Net on every path: a give-back of another window, or of a
// hold that is over, adds no tokens.
func (w *writer) add(of Value) {
	for i, l := range w.r.Limits {
		a, net := l.Attrs, of
		if l.Window != nil || l.Holds() {
			net = Net
		}
		next, verb := w.more, ""
		if i == 0 {
			next, verb = w.line, "ADD "
		}
		next("%s%s %s, %s %s%s", verb, a.Tokens, w.of(i, net), a.Consumed, w.of(i, Used), w.cells(i))
	}
}

// cells is what ADD does to the cells of the i-th limit, after other actions: "" if it counts no holds.
func (w *writer) cells(i int) string {
	l := w.r.Limits[i]
	if !l.Holds() {
		return ""
	}
	return fmt.Sprintf(", %s %s, %s %s", l.Attrs.Cells[0], w.of(i, Cell0), l.Attrs.Cells[1], w.of(i, Cell1))
}

// between guards every balance, and what a limit holds by holds. A limit that needs no guard keeps its
// clause, with open bounds: the text is a constant.
func (w *writer) between(holds func(i int) string) {
	for i, l := range w.r.Limits {
		text := fmt.Sprintf("AND %s BETWEEN %s AND %s", l.Attrs.Tokens, w.of(i, Lo), w.of(i, Hi))
		if l.Window != nil {
			text += " AND " + w.sameWindow(i)
		}
		w.line("%s", text)
		if l.Holds() {
			w.line("AND %s", holds(i))
		}
	}
}
