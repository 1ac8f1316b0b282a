package evolution_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestDebtOfUnknownLimit: an old version's charge of a chain, planned from an image of before, does not shorten the life of a bucket
// that is deep in debt since, of a limit that only the new version knows: DynamoDB would delete it, and the debt with it.
func TestDebtOfUnknownLimit(t *testing.T) {
	w := newWorld(t)
	old, next := w.deploy(t, 1), w.deploy(t, 2)
	take(t, old, cost{rpm: 1, tpm: 1})
	call := take(t, next, cost{rpm: 1, tpm: 1, tpd: 10})
	take(t, old, cost{rpm: 1, tpm: 1}) // so that it knows of tpd
	if err := call.settle(cost{rpm: 1, tpm: 1, tpd: 1_000_000}); err != nil {
		t.Fatal(err)
	}
	w.later(100 * time.Millisecond)
	take(t, old, cost{rpm: 1, tpm: 1})
	s := w.state(t, "user-a")
	if tpd := s.balances["tpd"]; tpd.Tokens != -900_000*bucket.Milli {
		t.Fatalf("tpd has %d, want a debt of 900,000", tpd.Tokens)
	}
	if full := start/1000 + 10*24*3600; s.ttl < int64(full) {
		t.Errorf("the bucket expires at %d, and is full at %d", s.ttl, full)
	}
}
