// Package wire has a place in the direction.
package wire

// Sender sends.
type Sender struct{}

// Send sends.
func (Sender) Send() {}
