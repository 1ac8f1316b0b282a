// Package store is what stores and generated code are written against: the interfaces of a store, its calls,
// the description of a schema's resources, and errors. Not for import: package runtime has aliases of what
// users need.
//
// Package runtime imports this package; this package does not import it.
package store

// Generation7 is the compile-time handshake with generated code. A generated package names the generation it
// was made for, so it does not compile beside a module that no longer serves it.
const Generation7 = true
