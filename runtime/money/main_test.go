package money_test

import (
	"flag"
	"os"
	"testing"
)

// TestMain gives the properties more than rapid's 100 draws: they take microseconds. -rapid.checks on the
// command line still wins.
func TestMain(m *testing.M) {
	if err := flag.Set("rapid.checks", "5000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}
