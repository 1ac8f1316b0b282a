package window

import (
	_ "embed" // for the names of zones
	"slices"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones, whatever the machine has
)

//go:embed zones.txt
var zoneNames string

// Zones returns the names of all zones, sorted, as Go's own rules of zones have them. Callers must not change
// them.
func Zones() []string { return zones() }

var zones = sync.OnceValue(func() []string { return strings.Fields(zoneNames) })

// KnownZone reports whether name is that of a zone. A file system that ignores case would find more.
func KnownZone(name string) bool {
	_, found := slices.BinarySearch(Zones(), name)
	if !found {
		return false
	}
	_, err := time.LoadLocation(name)
	return err == nil
}
