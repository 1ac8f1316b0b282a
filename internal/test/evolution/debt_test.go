package evolution_test

import (
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// TestDebtOfUnknownLimit: a bucket has become deep in debt of a limit that only the new version knows. A
// write of the old version, planned from an older image, does not shorten the bucket's life. Otherwise
// DynamoDB would delete it, and the debt with it.
func TestDebtOfUnknownLimit(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *process, *lease){
		"a chain's charge": func(t *testing.T, p *process, _ *lease) {
			t.Helper()
			take(t, p, cost{rpm: 1, tpm: 1})
		},
		"a give-back": func(_ *testing.T, _ *process, l *lease) { l.release() },
		"a settle up": func(t *testing.T, _ *process, l *lease) {
			t.Helper()
			if err := l.settle(cost{rpm: 2, tpm: 2}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old, next := w.deploy(t, 1), w.deploy(t, 2)
			take(t, old, cost{rpm: 1, tpm: 1})
			call := take(t, next, cost{rpm: 1, tpm: 1, tpd: 10})
			last := take(t, old, cost{rpm: 1, tpm: 1}) // so that it knows of tpd
			if err := call.settle(cost{rpm: 1, tpm: 1, tpd: 1_000_000}); err != nil {
				t.Fatal(err)
			}
			w.later(100 * time.Millisecond)
			write(t, old, last)
			s := w.state(t, "user-a")
			if tpd := s.balances["tpd"]; tpd.Tokens != -900_000*bucket.Milli {
				t.Fatalf("tpd has %d, want a debt of 900,000", tpd.Tokens)
			}
			if full := int64(start/1000 + 10*24*3600); s.ttl < full {
				t.Errorf("the bucket expires at %d, and is full at %d", s.ttl, full)
			}
		})
	}
}
