package main

import (
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/internal/test/curl"
	"github.com/sluice-go/sluice/runtime/limittest"

	"github.com/sluice-go/sluice/examples/publicapi/limits"
)

// TestTutorial: the server answers as docs/tutorials/public-api.md shows.
func TestTutorial(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim, err := limits.New(limittest.Store(t))
		if err != nil {
			t.Fatal(err)
		}
		keys := map[string]limits.Key{"secret-1": {ID: "acme"}}
		curl.Check(t, "../../docs/tutorials/public-api.md", newAPI(lim.API, keys))
	})
}
