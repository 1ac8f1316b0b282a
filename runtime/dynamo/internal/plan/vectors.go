package plan

// VectorPool is room for vectors that last for one plan.
type VectorPool struct {
	free []int64
	used int
	own  [2 * vectorsPerLimit]int64
}

// vectorsPerLimit is how many vectors a plan takes: two tries of 5 at the most, and 4 besides.
const vectorsPerLimit = 14

// reset makes all of the room free again.
func (s *VectorPool) reset() {
	if s != nil {
		s.used = 0
	}
}

// vector returns n zeros.
func (s *VectorPool) vector(n int) []int64 {
	if s == nil {
		return make([]int64, n)
	}
	if s.used+n > len(s.free) {
		if s.free, s.used = s.own[:], 0; vectorsPerLimit*n > len(s.own) {
			s.free = make([]int64, vectorsPerLimit*n)
		}
	}
	v := s.free[s.used : s.used+n : s.used+n]
	s.used += n
	clear(v)
	return v
}
