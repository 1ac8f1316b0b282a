// Package store is what stores and generated code are written against: the interfaces of a store, what it is asked, what a
// schema's resources are, and the errors that a store returns.
//
// Users need package runtime alone, which has other names for what they use of this one. It imports this package, and this
// package does not import it.
package store

// Generation2 is the compile-time handshake with generated code: a generated package names the generation it was made
// for, and so does not compile beside a module that no longer serves it.
const Generation2 = true
