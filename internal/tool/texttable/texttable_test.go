package texttable_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/tool/texttable"
)

func TestWrite(t *testing.T) {
	var out strings.Builder
	err := texttable.Write(&out, "  ", "lrl", [][]string{
		{"LIMIT", "LEFT", "NOTE"},
		{"rpm", "66.6", ""},
		{},
		{"größer", "1,000,000", "–"},
		{"short"},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Join([]string{
		"  LIMIT        LEFT  NOTE",
		"  rpm          66.6",
		"",
		"  größer  1,000,000  –",
		"  short",
		"",
	}, "\n")
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestWriteTooManyCells(t *testing.T) {
	if err := texttable.Write(&strings.Builder{}, "", "l", [][]string{{"a", "b"}}); err == nil {
		t.Error("no error for a row that is too long")
	}
}

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{
		0: "0", 999: "999", 1000: "1,000", 1234567: "1,234,567", -100: "-100", -1000: "-1,000", -123456: "-123,456",
	} {
		if got := texttable.Count(n); got != want {
			t.Errorf("Count(%d) = %s, want %s", n, got, want)
		}
	}
}

// TestCellsAreOneLine: a cell cannot add a line, or change how the terminal shows others.
func TestCellsAreOneLine(t *testing.T) {
	var out strings.Builder
	if err := texttable.Write(&out, "", "lr", [][]string{{"a\nb", "1"}, {"\x1b[2J\u202e", "22"}}); err != nil {
		t.Fatal(err)
	}
	if want := "\"a\\nb\"            1\n\"\\x1b[2J\\u202e\"  22\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
