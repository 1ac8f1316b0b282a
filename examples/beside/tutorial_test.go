package main

import (
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/runtime"
)

var (
	loggedLine = regexp.MustCompile(`(?m)^ +main_test\.go:(\d+): (.*)\n`)
	number     = regexp.MustCompile(`\d+`)
)

// TestTutorial: the tests log what docs/tutorials/beside-an-existing-limiter.md shows, from the lines that it
// names. Ties between processes may end in either way, so a count may differ a little.
func TestTutorial(t *testing.T) {
	var logged []string
	synctest.Test(t, func(t *testing.T) {
		processes := fleet(t)
		logged = append(logged, fmt.Sprint("admitted to customer acme in 10 s: ", play(t, processes)))
		logged = append(logged, processes[0].seen.String())
	})
	synctest.Test(t, func(t *testing.T) {
		processes := fleet(t, runtime.WithCallDefaults(runtime.Shadow(false)))
		logged = append(logged, fmt.Sprint("admitted to customer acme in 10 s: ", play(t, processes)))
	})
	source := readFile(t, "main_test.go")
	page := readFile(t, "../../docs/tutorials/beside-an-existing-limiter.md")
	lines, shown := strings.Split(source, "\n"), loggedLine.FindAllStringSubmatch(page, -1)
	if len(shown) != len(logged) {
		t.Fatalf("the tutorial shows %d lines, %d are logged", len(shown), len(logged))
	}
	for i, m := range shown {
		at, _ := strconv.Atoi(m[1])
		if !alike(m[2], logged[i]) || at > len(lines) || !strings.Contains(lines[at-1], "t.Log") {
			t.Errorf("the tutorial shows %q, logged is %q", m[0], logged[i])
		}
	}
}

// alike reports whether two lines differ in their numbers alone, by 2 at most.
func alike(a, b string) bool {
	if number.ReplaceAllString(a, "n") != number.ReplaceAllString(b, "n") {
		return false
	}
	others := number.FindAllString(b, -1)
	for i, n := range number.FindAllString(a, -1) {
		x, _ := strconv.Atoi(n)
		if y, _ := strconv.Atoi(others[i]); x-y > 2 || y-x > 2 {
			return false
		}
	}
	return true
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
