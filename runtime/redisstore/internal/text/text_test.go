package text

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestMoney: an override of money comes back as it is, up to what scripts compute exactly.
func TestMoney(t *testing.T) {
	spec := &store.Spec{Limits: []string{"tpd", "day"}, Units: []string{"", "USD"}}
	read := func(i int, nanos money.Amount) (got bucket.Limit, err error) {
		l, err := ParseLimit(spec, i, Limit(bucket.Limit{Capacity: int64(nanos), Burst: int64(nanos), Period: 1e9}))
		if l != nil {
			got = *l
		}
		return got, err
	}
	for _, nanos := range []money.Amount{money.Nano, MostMoney} {
		if got, err := read(1, nanos); got.Capacity != int64(nanos) || err != nil {
			t.Errorf("%v became %v, %v", nanos, got, err)
		}
	}
	_, err := read(1, MostMoney+money.Nano)
	const want = "limit day: capacity 9000000.000000001 is above 9000000, up to which money is exact on " +
		"Redis: " +
		"lower it, or keep it on DynamoDB"
	if err == nil || err.Error() != want {
		t.Errorf("%v\nwant %s", err, want)
	}
	if int64(MostMoney) >= 1<<53 {
		t.Error("not exact in Lua")
	}
	if _, err := read(0, MostMoney); err == nil || !strings.Contains(err.Error(), "is above 1000000000000:") {
		t.Errorf("as tokens: %v", err)
	}
}

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
