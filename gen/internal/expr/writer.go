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

// windows is the assignments of every window's end. The end is that of the image, unless the write opens the
// next window.
func (w *writer) windows() []string {
	var all []string
	for i, l := range w.r.Limits {
		if l.Window != nil {
			all = append(all, fmt.Sprintf("%s = %s", l.Attrs.Ends, w.of(i, Ends)))
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

// add changes the tokens of every limit by net, and the consumption by the cost. A limit with windows has Net
// on every path: a give-back of another window adds no tokens.
func (w *writer) add(of Value) {
	for i, l := range w.r.Limits {
		net := of
		if l.Window != nil {
			net = Net
		}
		next, verb := w.more, ""
		if i == 0 {
			next, verb = w.line, "ADD "
		}
		next("%s%s %s, %s %s", verb, l.Attrs.Tokens, w.of(i, net), l.Attrs.Consumed, w.of(i, Used))
	}
}

// between guards every balance. A limit that needs no guard keeps its clause, with open bounds: the text is a
// constant.
func (w *writer) between() {
	for i, l := range w.r.Limits {
		text := fmt.Sprintf("AND %s BETWEEN %s AND %s", l.Attrs.Tokens, w.of(i, Lo), w.of(i, Hi))
		if l.Window != nil {
			text += " AND " + w.sameWindow(i)
		}
		w.line("%s", text)
	}
}
