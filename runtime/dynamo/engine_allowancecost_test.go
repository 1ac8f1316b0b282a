package dynamo

import (
	"testing"

	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
)

// TestWindowCapacity holds what windows cost, by the engine's own bill. Ids have 36 bytes, as UUIDs do. A
// bucket of five limits with windows and one that refills costs one unit a call, as does a settle. A chain of
// two, the child of which has three limits, costs four. So no item is above 1 KB, and nothing is read.
func TestWindowCapacity(t *testing.T) {
	e := newEngine(t)
	bill := newMeter(t, e.client)
	m := e.mailer(t, bill)
	const id = "8d7c1ab4-3c0a-4b0e-9a5f-7f3f1a2b4c5d"
	tenant := windows.Org{ID: id}
	all := windows.MailCost{Weekly: 1, Daily: 1, Monthly: 1, Quarterly: 1, Yearly: 1, RPM: 1}
	key := windows.Key{ID: id, Org: tenant}
	each := windows.GatewayCost{TPD: 1, Session: 1}
	mail := func() *windows.MailLease {
		lease, err := m.Mail.Acquire(t.Context(), tenant, all)
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	gateway := func() *windows.GatewayLease {
		lease, err := m.Gateway.Acquire(t.Context(), key, each)
		if err != nil {
			t.Fatal(err)
		}
		return lease
	}
	less := all
	less.RPM, less.Daily = 2, 3
	mail()
	gateway()
	for _, test := range []struct {
		name string
		at   int64
		call func()
		want usage
	}{
		{"a call", 1000, func() { mail() }, usage{Calls: 1, Writes: 1, Units: 1}},
		{"a chain", 1000, func() { gateway() }, usage{Calls: 1, Writes: 1, Units: 4}},
		{"a call and its settle", 2000, func() {
			if err := mail().Settle(t.Context(), less); err != nil {
				t.Error(err)
			}
		}, usage{Calls: 2, Writes: 2, Units: 2}},
		{"the first call of a day", endOfDay + 1, func() { mail() }, usage{Calls: 1, Writes: 1, Units: 1}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e.clock.set(test.at)
			bill.take()
			test.call()
			if got := bill.take(); got != test.want {
				t.Errorf("%+v, want %+v", got, test.want)
			}
		})
	}
}
