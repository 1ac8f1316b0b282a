package expr

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// TestOperands holds each path's text against its operands, for any names of limits.
func TestOperands(t *testing.T) {
	name := rapid.StringMatching(`[a-z][a-z0-9_]{0,5}`)
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(name, 1, 8, rapid.ID).Draw(t, "names")
		removed := rapid.IntRange(0, len(names)-1).Draw(t, "removed")
		windows := rapid.IntRange(0, len(names)).Draw(t, "windows")
		held := rapid.SliceOfDistinct(rapid.SampledFrom(names), rapid.ID).Draw(t, "held")
		for _, p := range Paths(resource(names[removed:], names[:removed], held, names[:windows]...)) {
			used := regexp.MustCompile(`:[a-z0-9_]+`).FindAllString(p.Update+p.Condition, -1)
			var given []string
			for _, o := range p.Operands {
				if slices.Contains(given, o.Placeholder) {
					t.Fatalf("%s: two values for %s", p.Method, o.Placeholder)
				}
				given = append(given, o.Placeholder)
			}
			slices.Sort(used)
			slices.Sort(given)
			if !slices.Equal(slices.Compact(used), given) {
				t.Fatalf("%s uses %v and gives %v", p.Method, used, given)
			}
		}
	})
}

// TestHowManyFit counts limits up to the 4096 bytes, and operators up to DynamoDB's 300.
func TestHowManyFit(t *testing.T) {
	for _, tc := range []struct{ width, fit, windows, inFlight, released int }{
		{2, 26, 23, 19, 17}, {3, 24, 21, 18, 16}, {16, 11, 10, 8, 7}, {32, 7, 6, 5, 4},
	} {
		plain := func(names []string) *model.Resource { return resource(names, nil, nil) }
		windowed := func(names []string) *model.Resource { return resource(names, nil, nil, names...) }
		inFlight := func(names []string) *model.Resource { return resource(names, nil, names) }
		released := func(names []string) *model.Resource { return resource(names, nil, names, names...) }
		if fit := fits(t, tc.width, plain); fit != tc.fit {
			t.Errorf("%d limits with names of %d letters fit, want %d", fit, tc.width, tc.fit)
		}
		if fit := fits(t, tc.width, windowed); fit != tc.windows {
			t.Errorf("%d limits with windows, with names of %d letters, fit, want %d", fit, tc.width, tc.windows)
		}
		if fit := fits(t, tc.width, inFlight); fit != tc.inFlight {
			t.Errorf("%d limits in flight, with names of %d letters, fit, want %d", fit, tc.width, tc.inFlight)
		}
		if fit := fits(t, tc.width, released); fit != tc.released {
			t.Errorf("%d limits with windows and holds, with names of %d letters, fit, want %d", fit, tc.width,
				tc.released)
		}
	}
}

// fits returns how many limits with names of width letters fit.
func fits(t *testing.T, width int, of func(names []string) *model.Resource) int {
	t.Helper()
	operators := regexp.MustCompile(`AND|OR|BETWEEN|=|<>|\+|exists\(`)
	var names []string
	for i := 0; ; i++ {
		name := string(rune('a'+i/26)) + string(rune('a'+i%26)) + strings.Repeat("x", width-2)
		if names = append(names, name); longest(of(names)).bytes > MaxBytes {
			return len(names) - 1
		}
		for _, p := range Paths(of(names)) {
			for _, text := range []string{p.Update, p.Condition} {
				if n := len(operators.FindAllString(text, -1)); n > 300 {
					t.Errorf("%d limits of %d letters: %s has %d operators", len(names), width, p.Method, n)
				}
			}
		}
	}
}

// TestCheckIsExact: as many limits as are said to be too many are too many.
func TestCheckIsExact(t *testing.T) {
	s := &schema.Schema{Resources: []*schema.Resource{{Name: "api", GoName: "API"}}}
	r := s.Resources[0]
	for i := range 24 {
		r.Limits = append(r.Limits, &schema.Limit{Name: "l" + string(rune('a'+i)) + "x", GoName: "L"})
	}
	if problems := Check(s); problems != nil {
		t.Errorf("24 limits of 3 letters: %v", problems)
	}
	r.Limits = append(r.Limits, &schema.Limit{Name: "lzx", GoName: "L"})
	problems := Check(s)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "it has 1 limit too many") {
		t.Errorf("25 limits of 3 letters: %v", problems)
	}
	if m := model.ResourceOf(r); longest(m).path != "Reshape" {
		t.Errorf("the longest path is %s", longest(m).path)
	}
}
