package table

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/value"

// Holds reports whether an item with these key attributes, which need not exist, would be in the range, whatever its After.
func (v *View) Holds(r Range, keys value.Map) bool {
	from, to := r.ends()
	at := v.position(keys)
	return at.compare(&from) >= 0 && (to == nil || at.compare(to) < 0)
}
