package memdynamo

// Option configures New.
type Option func(*options)

type options struct {
	clock Clock
	seed  uint64
}

// WithClock replaces the system's clock, which testing/synctest controls. A nil clock changes nothing.
func WithClock(c Clock) Option {
	return func(o *options) {
		if c != nil {
			o.clock = c
		}
	}
}

// WithSeed sets what chance is derived from; the default is 1. See Faults for what one seed repeats.
func WithSeed(seed uint64) Option {
	return func(o *options) { o.seed = seed }
}
