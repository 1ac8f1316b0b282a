package httplimit_test

import (
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
)

// refusedAgain sends calls of random cost, and where one is denied comes back after Retry-After, less sooner.
// It returns how many denials there were, and how many callers were denied again.
func refusedAgain(t *testing.T, sooner time.Duration) (denials, again int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		client := limited(t, open(t, limittest.Store(t)).GPT4, nothing, httplimit.Headers())
		dice := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			query := "user=1&tpm=" + strconv.Itoa(1+dice.IntN(15_000))
			r := get(t, client, query)
			if r.StatusCode == http.StatusOK {
				continue
			}
			denials++
			after, err := strconv.Atoi(r.Header.Get("Retry-After"))
			if err != nil || r.StatusCode != http.StatusTooManyRequests {
				t.Fatalf("%d %v", r.StatusCode, r.Header)
			}
			time.Sleep(time.Duration(after)*time.Second - sooner) //nolint:forbidigo // in a bubble
			if get(t, client, query).StatusCode != http.StatusOK {
				again++
			}
		}
	})
	return denials, again
}

// TestRetryAfterIsNeverEarly: who comes back when told is served. A second sooner nobody is, so that it is
// not late either, and the first half of the test can fail.
func TestRetryAfterIsNeverEarly(t *testing.T) {
	if denials, again := refusedAgain(t, 0); denials < 100 || again > 0 {
		t.Errorf("of %d callers, %d were denied again", denials, again)
	}
	if denials, again := refusedAgain(t, time.Second); denials < 100 || again < denials {
		t.Errorf("a second sooner, of %d callers %d were denied again, want all", denials, again)
	}
}
