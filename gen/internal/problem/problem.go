// Package problem is the mistakes that are found in a limits.yaml, each with its place.
package problem

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Pos is a place in a file. Line and Col count from 1; Col counts characters.
type Pos struct {
	File      string
	Line, Col int
}

// String returns p as file:line:col.
func (p Pos) String() string { return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col) }

// Compare orders positions as they follow each other in a file.
func (p Pos) Compare(q Pos) int {
	return cmp.Or(cmp.Compare(p.File, q.File), cmp.Compare(p.Line, q.Line), cmp.Compare(p.Col, q.Col))
}

// Problem is one mistake: its position, the rule it breaks, and a message with the cure.
type Problem struct {
	Pos
	Rule    string
	Message string // one line
}

// String returns p as file:line:col: RULE: message.
func (p Problem) String() string { return fmt.Sprintf("%s: %s: %s", p.Pos, p.Rule, p.Message) }

// Problems is a list of mistakes. As an error it must not be empty: test its length before returning it as
// one.
type Problems []Problem //nolint:errname // mostly used as a list, not as an error

// MaxShown is the number of problems that Error lists: a file may have a million.
const MaxShown = 100

// Error returns the first MaxShown problems, one per line, and counts the rest.
func (ps Problems) Error() string {
	var lines []string
	for i, p := range ps {
		if i == MaxShown {
			lines = append(lines, fmt.Sprintf("and %d more", len(ps)-i))
			break
		}
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// Add appends a problem whose message is formatted as by fmt.Sprintf.
func (ps *Problems) Add(pos Pos, rule, format string, args ...any) {
	*ps = append(*ps, Problem{Pos: pos, Rule: rule, Message: fmt.Sprintf(format, args...)})
}

// Sort orders ps by file, line, column and rule, and by message where these are equal.
func (ps Problems) Sort() {
	slices.SortFunc(ps, func(a, b Problem) int {
		return cmp.Or(a.Compare(b.Pos), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Message, b.Message))
	})
}
