package conformance_test

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

var (
	repeatMacro = regexp.MustCompile(`\$\(([^*\n]+)\*([0-9]+)\)`)
	eachMacro   = regexp.MustCompile(`(?m)^\$each ([0-9]+) ([0-9]+) (.*)$`)
	nameMacro   = regexp.MustCompile(`\$[a-z][a-zA-Z]*`)
)

// longRun is from where on one letter repeated is written as a macro.
const longRun = 64

// expand returns a request's text with its macros and names replaced.
func expand(text string, names map[string]string) string {
	text = eachMacro.ReplaceAllStringFunc(text, func(line string) string {
		parts := eachMacro.FindStringSubmatch(line)
		first, _ := strconv.Atoi(parts[1]) // the pattern has digits only
		last, _ := strconv.Atoi(parts[2])
		var each []string
		for i := first; i <= last; i++ {
			each = append(each, strings.ReplaceAll(parts[3], "$i", strconv.Itoa(i)))
		}
		return strings.Join(each, ",\n")
	})
	text = repeatMacro.ReplaceAllStringFunc(text, func(macro string) string {
		parts := repeatMacro.FindStringSubmatch(macro)
		count, _ := strconv.Atoi(parts[2])
		return strings.Repeat(parts[1], count)
	})
	text = strings.ReplaceAll(text, "$T", names["T"])
	return nameMacro.ReplaceAllStringFunc(text, func(name string) string {
		if value, ok := names[name[1:]]; ok {
			return value
		}
		return name
	})
}

// fold is the inverse of expand as far as replies need it: the run's table names, and long runs of one
// letter.
func fold(text string, names map[string]string) string {
	text = strings.ReplaceAll(text, names["T"], "$T")
	var b strings.Builder
	for begin := 0; begin < len(text); {
		end := begin + 1
		for end < len(text) && text[end] == text[begin] {
			end++
		}
		if end-begin >= longRun {
			fmt.Fprintf(&b, "$(%c*%d)", text[begin], end-begin)
		} else {
			b.WriteString(text[begin:end])
		}
		begin = end
	}
	return b.String()
}
