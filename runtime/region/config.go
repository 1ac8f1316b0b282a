package region

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Config says what a Sync keeps in order, and by what.
type Config struct {
	Region    string // this one; one of those that the specs name
	Table     Table
	Snapshots Snapshots
	Specs     []*store.Spec // of resources whose limits are shared out: others are passed over

	Evict   time.Duration // after so long a silence what a region held is shared out; 0 is 10 windows, less than 5 is refused
	Unused  time.Duration // after so long without a call a share goes back to the floor; 0 is 24 hours
	Clock   store.Clock   // nil is the system's
	Logger  *slog.Logger  // nil is slog's default
	Told    func(*Report) // after each cycle; may be nil
	Drift   int64         // percent by which a share may differ from what is configured; 0 is 15
	Writers int           // shares written at once; 0 is 16
}

// Report is what one cycle did, or would do.
type Report struct {
	Region   string
	At       time.Time
	Epoch    int64     // that it is in, or that begins; 0 where that is not known
	Begins   string    // why that epoch begins: what the region held before counts no longer; empty where none begins
	Waits    time.Time // until then nothing is published, for shares of an earlier epoch may be in force; zero where it does not wait
	Sequence int64     // of the snapshot
	Shares   int       // limits of entities that the region has books of
	Writes   []Write
	Failed   []error // what was not written, and why
	Operated int     // writes that were left out because an operator has stored something there
	Peers    []Peer  // the other regions, by name
	Beating  bool    // the heartbeat was renewed
}

// Write is one entity's share of a resource's limits.
type Write struct {
	Entity, Resource string
	Limits           []Moved
	Done             bool
}

// Moved is a share that a write changes, in whole tokens.
type Moved struct {
	Limit    string
	Trigger  Trigger
	Whole    int64 // what all regions have together
	From, To int64
}

// Trigger is why a share is written.
type Trigger string

// Triggers.
const (
	Exhaustion Trigger = "exhaustion" // what is left would not last for two windows
	Drift      Trigger = "drift"      // the share that is due differs by more than Config.Drift
	Given      Trigger = "given"      // another region's trigger has fired, and this one has what it lacks
	Lower      Trigger = "lower"      // more is in force than the region holds: the limit was lowered
	Beside     Trigger = "beside"     // another limit of the same item is written
	Unused     Trigger = "unused"     // nobody has called for Config.Unused
	Doubt      Trigger = "doubt"      // what is stored is not known for certain: a write was interrupted
)

// Peer is another region, as this one sees it.
type Peer struct {
	Region string
	State  State
	Age    time.Duration // of its last snapshot
	Err    error         // why it could not be read
}

// State is whether a region takes part.
type State string

// States.
const (
	Live   State = "live"
	Silent State = "silent" // its share is reserved
	Gone   State = "gone"   // what it held is shared out; it starts again from the floor
	Unseen State = "unseen" // it has never published; its floor is reserved
)

// check returns what is wrong with c, a *store.SetupError.
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
			return fail(fmt.Sprintf("region %q is not among those that share %s out: %s", c.Region, spec.Resource, strings.Join(spec.Regions.Names, ", ")),
				"name one of them, or add it to regions in limits.yaml")
		}
	}
	if len(shared) == 0 {
		return fail("no resource is shared out by regions", "list regions in limits.yaml, and mark a resource `global: true`")
	}
	c.Specs = shared
	window := shared[0].Regions.Window
	if c.Evict == 0 {
		c.Evict = 10 * window
	}
	if c.Evict < leastEvict*window {
		return fail(fmt.Sprintf("Evict is %v, less than %d windows of %v: a region's shares may still be in force", c.Evict, leastEvict, window), "raise it")
	}
	if c.Unused < 0 || c.Drift < 0 || c.Writers < 0 {
		return fail("Unused, Drift or Writers is below 0", "leave them out for the defaults")
	}
	c.Unused, c.Drift, c.Writers = cmp.Or(c.Unused, 24*time.Hour), cmp.Or(c.Drift, 15), cmp.Or(c.Writers, 16)
	if c.Clock == nil {
		c.Clock = store.SystemClock()
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return nil
}

// leastEvict is after how many windows a region's shares are certainly no longer in force: three for its heartbeat, and more for
// clocks that differ.
const leastEvict = 5
