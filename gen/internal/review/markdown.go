package review

import (
	"fmt"
	"strings"
)

// markdown collects Markdown for GitHub.
type markdown struct {
	text strings.Builder
	used map[string]int // names of headings so far, each with the number of later headings of the same name
}

func (m *markdown) print(format string, args ...any) { fmt.Fprintf(&m.text, format, args...) }

// heading starts a part, and returns its name in links.
func (m *markdown) heading(level int, text string) (slug string) {
	m.print("\n%s %s\n", strings.Repeat("#", level), text)
	return m.slug(text)
}

// slug returns GitHub's name of a heading in links: its letters, digits, '-' and '_', with '-' for blanks,
// and a number if the name is taken.
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

// row prints a row of a table.
func (m *markdown) row(cells ...string) { m.print("| %s |\n", strings.Join(cells, " | ")) }

// markup escapes each character that can begin markup, HTML, a link or an image in Markdown.
var markup = strings.NewReplacer(`\`, `\\`, "`", "\\`", "*", `\*`, "[", `\[`, "]", `\]`, "<", `\<`, ">", `\>`,
	"&", `\&`, "|", `\|`, "~", `\~`, "#", `\#`, "$", `\$`)

// plain returns Markdown that renders as text, which a schema has in a doc.
func plain(text string) string { return markup.Replace(text) }
