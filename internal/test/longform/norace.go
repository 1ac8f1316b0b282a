//go:build !race

package longform

// detector says that the race detector is off.
const detector = false
