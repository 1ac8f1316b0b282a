//go:build race

package longform

// detector says that the race detector is on.
const detector = true
