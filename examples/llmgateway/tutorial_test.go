package main

import (
	"log"
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/internal/test/curl"
	"github.com/sluice-go/sluice/runtime/limittest"

	"github.com/sluice-go/sluice/examples/llmgateway/limits"
)

// TestTutorial: the gateway answers, and logs, as docs/tutorials/llm-gateway.md shows.
func TestTutorial(t *testing.T) {
	const file = "../../docs/tutorials/llm-gateway.md"
	var logged strings.Builder
	log.SetOutput(&logged)
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		curl.Check(t, file, gateway{lim.Chat})
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, first, _ := strings.Cut(logged.String(), "user-")
	if first, _, _ = strings.Cut(first, "\n"); !strings.Contains(string(text), " user-"+first+"\n") {
		t.Errorf("%s does not show user-%s", file, first)
	}
}
