// Package lua writes the scripts that Redis runs for a resource: redisstore's any.lua with every key written
// out.
//
// A key of a script is one limit of one bucket of the chain. A script has locals for each key, named
// <limit>_<what>, and followed by the bucket's number if there are several. <what> has no '_'. So no two keys
// have the same local, and no local is a keyword of Lua or one of the locals without '_', whatever the names
// of limits.
package lua

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/model"
)

// MaxKeys is the most keys of a script. Each takes 7 locals, and a function in Lua has at most 200.
const MaxKeys = 24

// Script is the script for calls on one resource with chains of one length.
type Script struct {
	Name  string // of the constant that holds it
	Chain int    // number of buckets that a call charges
	Keys  int    // for each bucket, one for each limit
	Text  string // "" where it is not written out
}

// Scripts returns the scripts of r: for chains of one bucket first, up to the longest that a call can have.
// None is written out if kinds differ in their limits: the keys of a chain then depend on its kinds. Nor is
// one if limits have windows or count holds, or if plans change the numbers. Calls then have lists of these,
// or say whose plan it is, and a script of the store loops over the keys.
func Scripts(r *model.Resource) []Script {
	scripts := make([]Script, len(r.Scripts))
	for i, name := range r.Scripts {
		s := Script{Name: name, Chain: i + 1, Keys: (i + 1) * len(r.Limits)}
		if s.Keys <= MaxKeys && r.Variants == nil && r.Windows == "" && !r.Holds && !r.OnPlans {
			s.Text = text(r, s.Chain)
		}
		scripts[i] = s
	}
	return scripts
}

// key is one limit of one bucket.
type key struct {
	limit  string
	bucket int // of the chain, from 1; 0 for a chain of one bucket
	number int // in KEYS, from 1
}

// local returns the name of a local of k.
func (k key) local(what string) string {
	if k.bucket == 0 {
		return k.limit + "_" + what
	}
	return fmt.Sprintf("%s_%s%d", k.limit, what, k.bucket)
}

// String returns the name of k in the script's comments.
func (k key) String() string {
	if k.bucket == 0 {
		return k.limit
	}
	return fmt.Sprintf("%s of bucket %d", k.limit, k.bucket)
}

// text returns the script for chains of that many buckets. It starts with a line end, as all text in raw
// strings does.
func text(r *model.Resource, chain int) string {
	var keys []key
	for bucket := 1; bucket <= chain; bucket++ {
		for _, l := range r.Limits {
			k := key{limit: l.Name, bucket: bucket, number: len(keys) + 1}
			if chain == 1 {
				k.bucket = 0
			}
			keys = append(keys, k)
		}
	}
	w := &writer{}
	w.start(r, chain, keys)
	for _, k := range keys {
		w.read(k)
	}
	w.calls(keys)
	w.line("")
	for _, k := range keys {
		w.write(k)
	}
	w.waits(keys)
	return w.buf.String()
}

// width is the most columns of a line: 120 less the closing quote.
const width = 119

// writer collects the text of one script.
type writer struct{ buf strings.Builder }

func (w *writer) line(format string, args ...any) {
	w.buf.WriteByte('\n')
	fmt.Fprintf(&w.buf, format, args...)
}

// folded writes parts on one line. If that is too long, each part has a line, indented more than the first.
func (w *writer) folded(indent string, parts ...string) {
	line := indent + strings.Join(parts, " ")
	if len(line) > width {
		line = indent + strings.Join(parts, "\n"+indent+"  ")
	}
	w.line("%s", line)
}

// assign declares locals, inside the loop over the calls, on as many lines as they take.
func (w *writer) assign(names, values []string) {
	whole := "  local " + strings.Join(names, ", ") + " = " + strings.Join(values, ", ")
	if len(whole) <= width {
		w.line("%s", whole)
		return
	}
	w.list("  local ", names, " =")
	w.list("    ", values, "")
}

// list writes items with commas between start and end, on as many lines as they take.
func (w *writer) list(start string, items []string, end string) {
	line := start
	for i, item := range items {
		if i < len(items)-1 {
			item += ","
		} else {
			item += end
		}
		if i > 0 && len(line)+len(item) > width {
			w.line("%s", strings.TrimRight(line, " "))
			line = "    "
		}
		line += item + " "
	}
	w.line("%s", strings.TrimRight(line, " "))
}
