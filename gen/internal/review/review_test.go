package review

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/model"
)

// resources is a package with resources of these names.
func resources(names ...string) *model.Package {
	p := &model.Package{Source: "limits.yaml", DynamoDB: true}
	for _, name := range names {
		r, c := bucketOf(1, 3)
		r.Name, r.Charged = name, []*model.Charged{c}
		p.Resources = append(p.Resources, r)
	}
	return p
}

// TestContents: links lead to the headings that they name, by GitHub's rules, whatever resources are called.
func TestContents(t *testing.T) {
	links := regexp.MustCompile("(?m)^- \\[`?(.*?)`?\\]\\(#(.*)\\)$")
	dropped := regexp.MustCompile(`[^a-z0-9_ -]`)
	for _, names := range [][]string{
		{"gpt-4"}, {"limits", "cost"}, {"a.b/c-d", "ab"}, {"a.b", "ab", "a/b"}, {"how-to-read-this"}, {"limits-1", "limits"}, {"a", "size", "expressions"},
	} {
		doc := string(Document(resources(names...)))
		titles := make(map[string]string) // by link
		for line := range strings.Lines(doc) {
			marks, title, ok := strings.Cut(strings.TrimSpace(line), " ")
			if !ok || strings.Trim(marks, "#") != "" {
				continue
			}
			slug := strings.ReplaceAll(dropped.ReplaceAllString(strings.ToLower(title), ""), " ", "-")
			unique := slug
			for n := 1; titles[unique] != ""; n++ {
				unique = fmt.Sprint(slug, "-", n)
			}
			titles[unique] = marks + strings.Trim(title, "`")
		}
		var linked []string
		for _, link := range links.FindAllStringSubmatch(doc, -1) {
			linked = append(linked, link[1])
			if got := titles[link[2]]; got != "##"+link[1] {
				t.Errorf("%q: the link of %s leads to %q", names, link[1], got)
			}
		}
		if want := append([]string{"How to read this"}, names...); !slices.Equal(linked, want) {
			t.Errorf("%q: links to %q", names, linked)
		}
	}
}

// TestExpressions: every path is there as it runs, with its length.
func TestExpressions(t *testing.T) {
	p := resources("api")
	doc := string(Document(p))
	for _, path := range expr.Paths(p.Resources[0]) {
		for _, text := range []string{path.Update, path.Condition} {
			if want := fmt.Sprintf(" (%d of 4,096 bytes):\n\n```sql\n%s\n```\n", len(text), strings.TrimPrefix(text, "\n")); text != "" && !strings.Contains(doc, want) {
				t.Errorf("the document lacks %s's\n%s", path.Method, want)
			}
		}
	}
}

// TestGuardsExplained: each kind of clause that stands in a condition has its row, under the path's name.
func TestGuardsExplained(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `[^|]*\\|[^|]*\\|[^|]*\\|$").FindAllString(reading, -1)
	explained := func(clause, path string) bool {
		return slices.ContainsFunc(rows, func(row string) bool {
			cells := strings.Split(row, "|")
			in := strings.Contains(cells[2], path)
			if except, ok := strings.CutPrefix(cells[2], " all but "); ok {
				in = !strings.Contains(except, path)
			}
			return in && strings.Contains(strings.ReplaceAll(cells[1], "…", ""), clause)
		})
	}
	p := resources("api")
	for _, path := range expr.Paths(p.Resources[0]) {
		name := strings.ToLower(path.Method)
		for _, clause := range []string{"attribute_not_exists(PK)", "rf = :rf0", "cv = :cv", "op <> :op", "attribute_exists(_tk)", "attribute_not_exists(_tk) OR"} {
			here := strings.Contains(strings.ReplaceAll(path.Condition, "b_l00", ""), clause)
			if here != explained(clause, name) {
				t.Errorf("%s has %q: %v; it is explained there: %v", name, clause, here, !here)
			}
		}
		for _, bound := range []string{"_lo", "_hi"} {
			if here := strings.Contains(path.Condition, bound); here != explained(bound, name) {
				t.Errorf("%s has %s: %v; it is explained there: %v", name, bound, here, !here)
			}
		}
	}
}
