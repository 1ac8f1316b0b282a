package region

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// Config configures a Sync.
type Config struct {
	Region    string // this region; one of those that the specs name
	Table     Table
	Snapshots Snapshots
	Specs     []*store.Spec // resources whose limits are divided among regions; others are ignored
	// the buckets of Specs, kept current from the table's stream; nil to read every bucket in every cycle
	Images *images.Images

	// silence after which a region's quotas are divided among the others; 0 is 10 windows, at least 5
	Evict  time.Duration
	Unused time.Duration // time without a call after which a quota returns to the floor; 0 is 24 hours
	// with Images, time after which all buckets are read, to find what the stream did not have; 0 is 24 hours
	Audit    time.Duration
	Clock    store.Clock   // nil for the system clock
	Logger   *slog.Logger  // nil for slog's default
	OnReport func(*Report) // after each cycle; may be nil
	Drift    int64         // percent by which the target may differ from the quota in force; 0 is the schema's
	Horizon  int64         // windows for which a balance has to last; 0 is the schema's
	Writers  int           // quotas written at once; 0 is 16
}

// Report describes what one cycle did, or would do.
type Report struct {
	Region string
	At     time.Time
	Epoch  int64  // the current epoch, or the one that begins; 0 if it is not known
	Begins string // why a new epoch begins, in which earlier holdings are void; empty if none begins
	// no snapshot until then, since quotas of an earlier epoch may be in force; zero if it does not wait
	Waits    time.Time
	Sequence int64 // of the snapshot
	Quotas   int   // number of limits of entities that the region has books of
	Writes   []Write
	Failed   []error // errors of what was not written
	Operated int     // writes omitted because an operator's override is stored there
	Peers    []Peer  // the other regions, by name
	Beating  bool    // the heartbeat was renewed
	// with Config.Images: why all buckets were read, "start", "lost" or "audit"; empty if they were not
	Read   images.Reason
	Missed int // buckets that the last audit found changed, without a record in the stream
}

// Write is the write of one entity's quotas of a resource.
type Write struct {
	Entity, Resource string
	Limits           []Change
	Done             bool
}

// Change is a quota that a write changes, in whole tokens.
type Change struct {
	Limit    string
	Trigger  Trigger
	Whole    int64 // the limit of all regions together
	From, To int64
}

// Trigger is the reason for which a quota is written.
type Trigger string

// Triggers.
const (
	Exhaustion Trigger = "exhaustion" // the balance would not last for Config.Horizon
	Drift      Trigger = "drift"      // the target differs by more than Config.Drift
	Given      Trigger = "given"      // another region's trigger has fired, and this region gives to it
	Lower      Trigger = "lower"      // the regions hold more than the limit, which was lowered
	Alongside  Trigger = "beside"     // another limit of the same item is written
	Unused     Trigger = "unused"     // there was no call for Config.Unused
	Doubt      Trigger = "doubt"      // the stored value is not known for certain: a write was interrupted
)

// Peer is another region as this one sees it.
type Peer struct {
	Region string
	State  State
	Age    time.Duration // of its last snapshot
	Err    error         // why it could not be read
}

// State says whether a region takes part.
type State string

// States.
const (
	Live      State = "live"
	Silent    State = "silent" // its quotas stay reserved for it
	Evicted   State = "gone"   // its quotas are divided among the others; it starts again from the floor
	NeverSeen State = "unseen" // it has never published; its floor stays reserved
)

// check sets the defaults. It returns a *store.SetupError for the first invalid field.
func (c *Config) check() error {
	fail := func(what, do string) error { return &store.SetupError{What: "region.New: " + what, Do: do} }
	if c.Table == nil || c.Snapshots == nil {
		return fail("no Table or no Snapshots", "set both")
	}
	var shared []*store.Spec
	for _, spec := range c.Specs {
		if spec.Regions == nil {
			continue
		}
		shared = append(shared, spec)
		if !slices.Contains(spec.Regions.Names, c.Region) {
			return fail(fmt.Sprintf("region %q is not one of those that %s is divided among: %s",
				c.Region, spec.Resource, strings.Join(spec.Regions.Names, ", ")),
				"name one of them, or add it to regions in limits.yaml")
		}
	}
	if len(shared) == 0 {
		return fail("no resource is divided among regions",
			"list regions in limits.yaml, and mark a resource `global: true`")
	}
	c.Specs = shared
	window := shared[0].Regions.Window
	if c.Evict == 0 {
		c.Evict = 10 * window
	}
	if c.Evict < minEvictWindows*window {
		return fail(fmt.Sprintf("Evict is %v, less than %d windows of %v: a region's quotas may still be in force",
			c.Evict, minEvictWindows, window), "raise it")
	}
	if c.Unused < 0 || c.Audit < 0 || c.Drift < 0 || c.Horizon < 0 || c.Writers < 0 {
		return fail("Unused, Audit, Drift, Horizon or Writers is below 0", "leave them out for the defaults")
	}
	c.Unused, c.Audit, c.Writers = cmp.Or(c.Unused, 24*time.Hour), cmp.Or(c.Audit, 24*time.Hour),
		cmp.Or(c.Writers, 16)
	c.Drift = cmp.Or(c.Drift, shared[0].Regions.Drift, store.DefaultDrift)
	c.Horizon = cmp.Or(c.Horizon, shared[0].Regions.Horizon, store.DefaultHorizon)
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// minEvictWindows is the number of windows after which a silent region's quotas are certainly not in force
// any more: three for its heartbeat, and the rest for clocks that differ.
const minEvictWindows = 5
