package store

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Regions divide a resource's limits: each has a table of its own, which knows nothing of the others'. The
// numbers of the schema and of kinds' overrides are for all regions together. In each region a bucket has a
// quota, which regional sync stores as the entity's override, for as long as sync is alive. Otherwise it has
// what every region keeps. An operator's override for an entity is for that one region.
type Regions struct {
	Names  []string      // sorted
	Floor  int64         // what every region keeps of a limit, in percent
	Window time.Duration // between two runs of sync; no quota is used for longer after it was read
	// percent by which the quota that demand asks for may differ from the one in force; 0 is DefaultDrift
	Drift   int64
	Horizon int64 // windows for which a balance has to last, or its quota is written; 0 is DefaultHorizon
}

// Defaults of Regions.
const (
	DefaultDrift   = 15
	DefaultHorizon = 2
)

// Keeps returns what every region keeps of whole: a closed limit if there are fewer tokens than regions.
func (r *Regions) Keeps(whole bucket.Limit) bucket.Limit {
	return whole.Quota(bucket.Floor(whole.Capacity/bucket.Milli, len(r.Names), r.Floor))
}

// KeepsOf is Keeps of each limit.
func (r *Regions) KeepsOf(whole []bucket.Limit) []bucket.Limit {
	kept := make([]bucket.Limit, len(whole))
	for i := range whole {
		kept[i] = r.Keeps(whole[i])
	}
	return kept
}

// Heartbeat is what regional sync says of itself in its region's table. Quotas that it stored under Epoch are
// in force until Expires. A quota after that, or of another epoch, counts as what every region keeps.
type Heartbeat struct {
	Epoch   int64  // 0 if sync never ran here
	Since   int64  // when Epoch began, or sync came back after Expires had passed, ms
	Expires int64  // ms
	Region  string // whose sync it is; empty if an older version stored it
}

// Alive reports whether quotas of h's epoch are in force at an instant, in ms.
func (h Heartbeat) Alive(now int64) bool { return h.Epoch > 0 && now < h.Expires }

// OfAnother reports whether h is of another region than own. It is false if h or own names none.
func (h Heartbeat) OfAnother(own string) bool { return own != "" && h.Region != "" && h.Region != own }

// Another returns a *SetupError if h is alive at an instant, in ms, and of another region than own: the table
// is not own's. It returns nil if h or own names none.
func (h Heartbeat) Another(own string, now int64) error {
	if !h.OfAnother(own) || !h.Alive(now) {
		return nil
	}
	return &SetupError{
		What: fmt.Sprintf("this is the regional sync of %s, and the heartbeat in its table is that of %s, "+
			"alive until %s",
			own, h.Region, time.UnixMilli(h.Expires).UTC().Format(time.RFC3339)),
		Do: fmt.Sprintf("name the table of %s; or, if this is its table, "+
			"stop the sync that runs for %s on it, and wait until then", own, h.Region),
	}
}

// Changed returns when h last changed what is in force, as seen at an instant, in ms.
func (h Heartbeat) Changed(now int64) int64 {
	if h.Alive(now) {
		return h.Since
	}
	return max(h.Since, h.Expires) // an epoch may begin before it is alive
}

// Holds reports whether the override s is in force at an instant, in ms: a quota while h is alive, an
// operator's always.
func (h Heartbeat) Holds(s Stored, now int64) bool {
	return s.Epoch == 0 || s.Epoch == h.Epoch && h.Alive(now)
}
