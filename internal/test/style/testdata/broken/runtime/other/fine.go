// Package other breaks nothing.
//
//   - A list may go on for as long as it has to, over lines that follow it, since nobody reads it as one
//     sentence of prose, and each item has its own beginning and its own end, however many words are in it.
//
// A name may contain inFlight, e.g. of a limit. Who asks may ask?
package other

var (
	inFlight = 1 // of calls
	legal    = 2 // contains a private word, but not as a word
)
