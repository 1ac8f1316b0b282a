package migrate

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Ahead is an item that was last refilled at an instant far ahead: in another unit than ms, or by a clock
// that was ahead. What refills until then is taken off its bucket.
type Ahead struct {
	Bucket

	Limit string `json:"limit"`
	Ms    int64  `json:"ahead_ms"`
}

// clockAhead is how far clocks may be ahead that nobody has to look after.
const clockAhead = time.Minute

// ahead notes those of found's items that a Carryable bucket would be in debt of, at now.
func (c *collector) ahead(spec *store.Spec, g *group, found *dynamo.Carry, now time.Time) {
	if found.State != dynamo.Carryable {
		return
	}
	for _, item := range counting(found) {
		ms := bucket.Sub(item.Refilled, now.UnixMilli())
		if ms > clockAhead.Milliseconds() && slices.Contains(spec.Limits, item.Name) {
			c.note(func(r *Report) { r.Ahead = append(r.Ahead, Ahead{Bucket{g.entity, g.resource}, item.Name, ms}) })
		}
	}
}
