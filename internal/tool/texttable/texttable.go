// Package texttable prints rows in aligned columns.
package texttable

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-go/sluice/runtime/store"
)

// gap separates two columns.
const gap = "  "

// Write prints rows to w, each on a line after indent. align has a letter per column: l for left, r for
// right; a row may be shorter than that, and an empty one is an empty line. Lines have no space at their end.
// A cell with characters that cannot be seen is a Go string literal, so that each row is one line.
func Write(w io.Writer, indent, align string, rows [][]string) error {
	widths := make([]int, len(align))
	for _, row := range rows {
		if len(row) > len(align) {
			return fmt.Errorf("texttable: a row of %d cells in %d columns", len(row), len(align))
		}
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(store.Quote(cell)))
		}
	}
	var text strings.Builder
	for _, row := range rows {
		cells := make([]string, len(row))
		for i, cell := range row {
			cell = store.Quote(cell)
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if align[i] == 'r' {
				cells[i] = space + cell
			} else {
				cells[i] = cell + space
			}
		}
		text.WriteString(strings.TrimRight(indent+strings.Join(cells, gap), " ") + "\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// Count writes n with its thousands apart.
func Count(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
