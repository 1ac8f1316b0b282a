package regionsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/region"
)

// brief writes a snapshot as the trace has it.
func brief(data []byte) string {
	var snap region.Snapshot
	if json.Unmarshal(data, &snap) != nil || snap.Version != region.Version {
		return string(data[:min(len(data), 300)])
	}
	var s strings.Builder
	fmt.Fprintf(&s, "epoch %d #%d", snap.Epoch, snap.Sequence)
	for _, name := range slices.Sorted(maps.Keys(snap.Peers)) {
		known := snap.Peers[name]
		fmt.Fprintf(&s, " %s:%d#%d", name, known.Epoch, known.Sequence)
		if known.Evicted {
			s.WriteString("gone")
		}
	}
	for i := range snap.Entries[:min(len(snap.Entries), 4)] {
		e := &snap.Entries[i]
		fmt.Fprintf(&s, " | %s/%s gen %d", e.Entity, e.Resource, e.Gen%1_000_000)
		if e.Closing {
			s.WriteString(" closing")
		}
		for _, l := range e.Limits {
			fmt.Fprintf(&s, " %s %d/%d of %d at %d", l.Limit, l.Quota, l.Held, l.Whole, l.Rate)
			if len(l.Given)+len(l.Taken) > 0 {
				fmt.Fprintf(&s, " gave %v took %v", l.Given, l.Taken)
			}
		}
	}
	return s.String()
}
