package edge

import (
	"fmt"
	"math/rand/v2"
	"time"
)

// mostSpread bounds Spread. More than a day would take from callers a whole window of the shortest calendar.
const mostSpread = 24 * time.Hour

// CheckSpread panics if the option Spread of a package cannot be d. Its message begins with that package.
func CheckSpread(of string, d time.Duration) {
	if d < 0 || d > mostSpread {
		panic(fmt.Sprintf("%s: Spread(%v): pass 0 to %v, such as a minute", of, d, mostSpread))
	}
}

// later returns a random time from 0 to spread.
func later(spread time.Duration) time.Duration { return rand.N(spread + 1) }
