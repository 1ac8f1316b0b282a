package keeper

import (
	"context"
	"testing"

	"github.com/sluice-go/sluice/runtime/store"
)

// watched is the owner of a record, which looks at it when the lease is lost.
type watched struct {
	record *Record
	over   []bool
}

func (w *watched) Lost()               { w.over = append(w.over, w.record.Over(0)) }
func (*watched) ReportLost(error)      {}
func (*watched) Collected()            {}
func (*watched) Closed()               {}
func (*watched) Close(context.Context) {}

// TestOverBeforeContextsEnd: a lease is over from the moment at which the Keeper says that it is lost. Its
// contexts end a moment later, and in a process that was frozen a caller may look in between.
func TestOverBeforeContextsEnd(t *testing.T) {
	var r Record
	w := &watched{record: &r}
	r.owner = w
	r.Begin(&store.Part{}, true)
	if r.Over(1 << 60) {
		t.Error("a lease that holds nothing is over")
	}
	if !r.lose() || len(w.over) != 1 || !w.over[0] {
		t.Errorf("over, when its contexts are to end: %v", w.over)
	}
	if !r.Over(0) {
		t.Error("a lost lease is not over")
	}
}
