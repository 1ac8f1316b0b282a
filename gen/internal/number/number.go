// Package number reads and writes the whole numbers of limits.yaml. Not for import: package schema does.
//
//	1_000_000  ->  1000000
package number

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Parse reads digits, which may be grouped by single '_'. Numbers that int64 does not hold are MaxInt64,
// above every bound. why is the mistake in text, or "". least and most are in messages only.
//
// It reads the text, not YAML's value: in yaml.v3, 0100 is 64 and 1_0 is 10; in YAML 1.2 they are 100 and
// text.
func Parse(text string, least, most int64) (n int64, why string) {
	digits := strings.ReplaceAll(text, "_", "")
	switch {
	case text == "":
		return 0, "is no number: write digits"
	case strings.Trim(digits, "0123456789") != "" || digits == "":
		return 0, fmt.Sprintf("is not a whole number from %d to %s: write digits, and '_' between digits if you "+
			"like", least, Grouped(most))
	case text[0] == '_', text[len(text)-1] == '_', strings.Contains(text, "__"):
		return 0, "has a '_' that is not between two digits"
	case text[0] == '0' && len(text) > 1:
		return 0, "starts with 0, which is octal to some readers of YAML: remove the 0"
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil { // out of range: there are only digits
		return math.MaxInt64, ""
	}
	return n, ""
}

// Grouped returns n as people write it: 1_000_000.
func Grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "_" + s[i:]
	}
	return s
}
