package review

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// carriedMost is the most that the value of m_<limit> takes: 19 digits of millitokens, whose last ones need
// not be zeros.
const carriedMost = 1 + 10

// manual is the text of the page that the document links to.
func manual(t *testing.T) string {
	t.Helper()
	_, path, ok := strings.Cut(Manual, "/blob/main/")
	if !ok {
		t.Fatalf("%s names no file of main", Manual)
	}
	text, err := os.ReadFile("../../../" + path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// scripted is a resource with scripts for chains of one and two buckets.
func scripted() *model.Resource {
	r := resources("api").Resources[0]
	r.Scripts = []string{"apiScript1", "apiScript2"}
	return r
}

// tableOf returns the first cells of the rows below a header of the manual.
func tableOf(t *testing.T, header string) []string {
	t.Helper()
	_, table, ok := strings.Cut(manual(t), "\n"+header+"\n")
	if !ok {
		t.Fatalf("the manual has no table %s", header)
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var cells []string
	for _, row := range strings.Split(table, "\n")[1:] {
		cells = append(cells, strings.TrimSpace(strings.Split(row, "|")[1]))
	}
	return cells
}

// TestManualOutcomes: the manual explains each row of the document's costs, in its order, and no other.
func TestManualOutcomes(t *testing.T) {
	var names []string
	for _, o := range outcomes() {
		names = append(names, o.String())
	}
	if got := tableOf(t, "| case | is |"); !slices.Equal(got, names) {
		t.Errorf("the manual explains %q, the document has %q", got, names)
	}
}

// TestManualNumbers: the numbers in the manual's text are those of the code.
func TestManualNumbers(t *testing.T) {
	text := strings.ReplaceAll(manual(t), "\n", " ")
	for _, want := range []string{
		fmt.Sprintf("Ids are taken to have %d bytes, as UUIDs have; each byte more makes %d.", typicalID,
			idTimes(&model.Resource{})),
		fmt.Sprintf("with ids of %d bytes", typicalID),
		fmt.Sprintf("the limit's name and up to %d bytes for each", len("m_")+carriedMost),
		fmt.Sprintf("more than %d keys", lua.MaxKeys),
		fmt.Sprintf("expressions of up to %d,%03d bytes", expr.MaxBytes/1000, expr.MaxBytes%1000),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the manual does not say %q", want)
		}
	}
}

// TestScriptsExplained: each row of the manual's table of Lua stands in every script.
func TestScriptsExplained(t *testing.T) {
	rows := tableOf(t, "| in a script | without it |")
	if len(rows) < 10 {
		t.Fatalf("%d rows", len(rows))
	}
	numbered := regexp.MustCompile(`(_[a-z]+)\d\b`)
	for _, s := range lua.Scripts(scripted()) {
		text := numbered.ReplaceAllString(s.Text, "$1")
		for _, row := range rows {
			part := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(row, "`")), "…", "[a-z0-9_]+")
			if !regexp.MustCompile(part).MatchString(text) {
				t.Errorf("there is no %s in\n%s", row, s.Text)
			}
		}
	}
}

// TestGuardsExplained: each kind of clause that stands in a condition has its row, under the path's name.
func TestGuardsExplained(t *testing.T) {
	rows := regexp.MustCompile("(?m)^\\| `[^|]*\\|[^|]*\\|[^|]*\\|$").FindAllString(manual(t), -1)
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
	w := window.Of("day")
	windowed := model.ResourceOf(&schema.Resource{Name: "api", GoName: "API", Limits: []*schema.Limit{
		{Name: "l00", GoName: "L"}, {Name: "w00", GoName: "W", Window: &w, Release: true},
	}})
	clauses := []string{"attribute_not_exists(PK)", "rf = :rf0", "cv = :cv", "op <> :op",
		"attribute_exists(_tk)", "attribute_not_exists(_tk) OR", "_we = :_we0", "attribute_not_exists(_we) OR",
		"_e = :_e0", "_e BETWEEN :_e0", "_h0 BETWEEN :_h0lo", "attribute_not_exists(_e) OR"}
	for _, path := range expr.Paths(windowed) {
		path.Condition = strings.NewReplacer("b_w00", "", ":w00", ":").Replace(path.Condition)
		name := strings.ToLower(path.Method)
		for _, clause := range clauses {
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
