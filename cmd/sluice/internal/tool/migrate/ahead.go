package migrate

import (
	"slices"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating"
	"github.com/sluice-go/sluice/runtime/store"
)

// Ahead is an item whose last refill is far in the future: its unit is not ms, or a clock was ahead. The
// tokens that refill until then are deducted from its bucket.
type Ahead struct {
	Bucket

	Limit string `json:"limit"`
	Ms    int64  `json:"ahead_ms"`
}

// clockAhead is the clock error that is not reported.
const clockAhead = time.Minute

// ahead records those of found's items that would put a Carryable bucket into debt, at now.
func (c *collector) ahead(spec *store.Spec, g *group, found *migrating.Carry, now time.Time) {
	if found.State != migrating.Carryable {
		return
	}
	for _, item := range counting(found) {
		ms := bucket.Sub(item.Refilled, now.UnixMilli())
		if ms > clockAhead.Milliseconds() && slices.Contains(spec.Limits, item.Name) {
			c.note(func(r *Report) { r.Ahead = append(r.Ahead, Ahead{Bucket{g.entity, g.resource}, item.Name, ms}) })
		}
	}
}
