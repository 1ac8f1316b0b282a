package runtime

// Option is of New.
type Option func()

// With is a method.
func (Resource) With() func() { return nil }

// WithBudget has the name of an option of New.
func WithBudget() func() { return nil }

// Clock has the name of a call's.
func Clock() Option { return nil }
