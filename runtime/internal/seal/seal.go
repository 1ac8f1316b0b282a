// Package seal marks interfaces that only this module implements, so that they can grow without breaking
// anyone.
package seal

// Sealed is named in a sealed interface's method; nothing outside this module can name it.
type Sealed struct{}
