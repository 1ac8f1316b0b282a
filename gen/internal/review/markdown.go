package review

import (
	"fmt"
	"strings"
)

// markdown is text for GitHub.
type markdown struct {
	text strings.Builder
	used map[string]int // names of headings so far, with how many of the same name came after
}

func (m *markdown) print(format string, args ...any) { fmt.Fprintf(&m.text, format, args...) }

// heading starts a part, and returns the name by which links find it.
func (m *markdown) heading(level int, text string) (slug string) {
	m.print("\n%s %s\n", strings.Repeat("#", level), text)
	return m.slug(text)
}

// slug returns what GitHub calls a heading in links: its letters, digits, '-' and '_', blanks as '-', and a number for one that
// is there already.
func (m *markdown) slug(heading string) string {
	name := strings.Map(func(c rune) rune {
		switch {
		case c == ' ':
			return '-'
		case c == '-', c == '_', 'a' <= c && c <= 'z', '0' <= c && c <= '9':
			return c
		}
		return -1
	}, strings.ToLower(heading))
	if m.used == nil {
		m.used = make(map[string]int)
	}
	slug := name
	for {
		if _, used := m.used[slug]; !used {
			break
		}
		m.used[name]++
		slug = fmt.Sprintf("%s-%d", name, m.used[name])
	}
	m.used[slug] = 0
	return slug
}

// table starts a table. A column of numbers is aligned by its title's colon.
func (m *markdown) table(titles ...string) {
	rule := make([]string, len(titles))
	for i, title := range titles {
		rule[i] = "---"
		if number, ok := strings.CutSuffix(title, ":"); ok {
			titles[i], rule[i] = number, "--:"
		}
	}
	m.print("\n")
	m.row(titles...)
	m.print("|%s|\n", strings.Join(rule, "|"))
}

// row goes on with a table.
func (m *markdown) row(cells ...string) { m.print("| %s |\n", strings.Join(cells, " | ")) }
