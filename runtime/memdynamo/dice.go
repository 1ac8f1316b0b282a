package memdynamo

import "math/rand/v2"

// dice are the random numbers of one request.
type dice struct{ source rand.PCG }

// cast returns the dice of the nth request.
func cast(seed, n uint64) *dice {
	d := &dice{}
	d.source.Seed(seed, n)
	return d
}

// roll returns a number in [0, 1).
func (d *dice) roll() float64 { return float64(d.source.Uint64()>>11) / (1 << 53) }

// id returns a request's id, of the form that AWS gives it.
func (d *dice) id() string {
	const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ012345"
	var id [52]byte
	var bits uint64
	for i := range id {
		if i%13 == 0 { // letters of 5 bits fit into a draw
			bits = d.source.Uint64()
		}
		id[i] = letters[bits%32]
		bits /= 32
	}
	return string(id[:])
}
