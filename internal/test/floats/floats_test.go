package floats

import (
	"go/ast"
	"go/parser"
	"strings"
	"testing"
)

// TestNoneControl: each way to a float is found.
func TestNoneControl(t *testing.T) {
	finder := newFinder(t)
	for body, want := range map[string]string{
		`x, _ := strconv.ParseInt("5", 10, 64); _ = x`:          "",
		`_ = bits.Len64(math.MaxInt64)`:                         "",
		`_, _ = strconv.ParseFloat("0.1", 64)`:                  "strconv.ParseFloat is",
		`_ = math.Float64bits`:                                  "math.Float64bits is",
		`_ = strconv.FormatInt(int64(math.Round(5)), 10)`:       "math.Round is",
		`var x int64 = 5e9; _ = x`:                              "5e9 is",
		`const x = 0.5 * 2; var y int = x; _ = y`:               "0.5 is",
		`const x = 3i * 3i; var y int = x; _ = y`:               "3i is",
		`var x float32; _ = x`:                                  "float32 is",
		`x := int64(5); _ = complex128(complex(1, 2)); _ = x`:   "complex128 is",
		`type money float64; _ = []money{}`:                     "money is",
		`_ = map[string][]struct{ price *float64 }{}`:           "float64 is",
		`_ = func(price float64) {}`:                            "float64 is",
		`_ = sort.Float64Slice(nil)`:                            "sort.Float64Slice is",
		`_ = time.Duration(5).Seconds() > 0; _ = math.MaxInt64`: ".Seconds is",
	} {
		const head = "package x\nimport (\"math\"; \"math/bits\"; \"sort\"; \"strconv\"; \"time\")\n" +
			"var _, _, _, _, _ = math.MaxInt8, bits.UintSize, sort.Ints, strconv.Itoa, time.Nanosecond\n"
		file, err := parser.ParseFile(finder.fset, "x.go", head+"func f() {"+body+"}", 0)
		if err != nil {
			t.Fatal(err)
		}
		found := strings.Join(finder.find(t, []*ast.File{file}), "; ")
		if (found == "") != (want == "") || !strings.Contains(found, want) {
			t.Errorf("%s: %q, want %q", body, found, want)
		}
	}
}

// TestNoneExcept: what is excepted may have floats, and nothing else may. One without floats is no exception.
func TestNoneExcept(t *testing.T) {
	finder := newFinder(t, "call", "rate", "whole", "gone")
	file, err := parser.ParseFile(finder.fset, "x.go", `package x
type call struct{ read float64 }
type event struct{ of call; n int64 }
func whole() int64 { return 5 }
func rate() int64 { return int64(0.5 * 2) }
func f(e event) (int64, float64) { return rate() + e.n, e.of.read }
`, 0)
	if err != nil {
		t.Fatal(err)
	}
	found := finder.find(t, []*ast.File{file})
	for _, one := range found {
		if !strings.HasPrefix(one, "x.go:6:") {
			t.Error(one)
		}
	}
	for name, floats := range finder.except {
		if want := name == "call" || name == "rate"; (floats > 0) != want {
			t.Errorf("%s has %d floats", name, floats)
		}
	}
	if all := strings.Join(found, "; "); !strings.Contains(all, "e.of.read is a float64") {
		t.Errorf("found %q", all)
	}
}
