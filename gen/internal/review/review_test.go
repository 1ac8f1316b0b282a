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
		r, c := sampleOf(1, 3)
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
		{"gpt-4"}, {"limits", "cost"}, {"a.b/c-d", "ab"}, {"a.b", "ab",
			"a/b"}, {"what-runs-on-dynamodb"}, {"limits-1", "limits"}, {"a", "size", "expressions"},
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
		if want := names; !slices.Equal(linked, want) {
			t.Errorf("%q: links to %q", names, linked)
		}
	}
}

// TestExpressions: every path has a row with the bytes of its expressions.
func TestExpressions(t *testing.T) {
	p := resources("api")
	doc := string(Document(p))
	for _, path := range expr.Paths(p.Resources[0]) {
		name, update, condition := strings.ToLower(path.Method), len(path.Update), len(path.Condition)
		row := fmt.Sprintf("\n| %s | %d | %d |\n", name, update, condition)
		row = strings.Replace(row, "| 0 |", "| puts the item |", 1)
		if !strings.Contains(doc, row) {
			t.Errorf("the document has no row %s", row)
		}
	}
}

// TestDocIsText: what a doc of limits.yaml has of HTML and Markdown is shown and not rendered.
func TestDocIsText(t *testing.T) {
	p := resources("gpt-4")
	p.Resources[0].Doc = "<img src=x onerror=alert(1)> &lt; [a](javascript:b) `c` **d**\n# e"
	doc := string(Document(p))
	const want = "\n> \\<img src=x onerror=alert(1)\\> \\&lt; \\[a\\](javascript:b) \\`c\\` \\*\\*d\\*\\*\n" +
		"> \\# e\n"
	if !strings.Contains(doc, want) {
		t.Errorf("%s\nhas no\n%s", doc, want)
	}
}
