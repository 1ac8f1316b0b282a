package text

import "testing"

// TestNumber: only finite numbers are taken, though Lua takes more.
func TestNumber(t *testing.T) {
	for _, stored := range []any{"inf", "-inf", "+Inf", "nan", "1e999", "x", "", nil, 1.5} {
		if n, err := Number("tokens", stored); err == nil {
			t.Errorf("%v is %v, want an error", stored, n)
		}
	}
	if n, err := Number("tokens", "-1.5e3"); n != -1500 || err != nil {
		t.Errorf("%v, %v, want -1500", n, err)
	}
}
