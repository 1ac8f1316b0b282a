// Package store is what stores and generated code are written against. It has the interfaces of a store, its
// calls, the description of a schema's resources, and the errors that a store returns.
//
// Users need only package runtime, which gives what they use of this package names of its own. It imports
// this package; this package does not import it.
package store

// Generation6 is the compile-time handshake with generated code. A generated package names the generation it
// was made for, so it does not compile beside a module that no longer serves it.
const Generation6 = true
