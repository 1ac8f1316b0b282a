// Package runtime drives generated limits: acquire, wait, settle, release, peek.
//
// Services import the package that sluice generated from their limits.yaml; it re-exports what they need of this one.
// Nothing here knows DynamoDB: a Store does.
package runtime

// Generation1 is the compile-time handshake with generated code: a generated package names the generation it was made
// for, and so does not compile beside a runtime that no longer serves it.
const Generation1 = true
