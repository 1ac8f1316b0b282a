// Package limittest helps users of sluice to test their code: with the real thing on a table in the process,
// or with a fake where limits do not matter. Both work in testing/synctest's bubbles, on virtual time.
package limittest
