// Package program is what commands use of their process: outputs, the clock, and errors that decide the
// exit code.
package program

import (
	"fmt"
	"io"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

// Env is what a command uses of its process. Results go to Stdout, progress and errors to Stderr.
type Env struct {
	Stdout, Stderr io.Writer
	Now            func() time.Time
}

// Say prints a result. A failed write is reported once, after the command: see Output.
func (p Env) Say(format string, args ...any) { _, _ = fmt.Fprintf(p.Stdout, format, args...) }

// Note prints progress. A failed write is ignored.
func (p Env) Note(format string, args ...any) { _, _ = fmt.Fprintf(p.Stderr, format, args...) }

// Print prints text, or returns err if there is one.
func (p Env) Print(text []byte, err error) error {
	if err == nil {
		p.Say("%s", text)
	}
	return err
}

// JSON prints v as indented JSON.
func (p Env) JSON(v any) error {
	text, err := term.JSON(v, "  ")
	if err != nil {
		return err
	}
	p.Say("%s\n", text)
	return nil
}

// JSONLine prints v as JSON on a line.
func (p Env) JSONLine(v any) error {
	text, err := term.JSON(v, "")
	if err != nil {
		return err
	}
	p.Say("%s\n", text)
	return nil
}

// Screen reports whether results go to a terminal.
func (p Env) Screen() bool {
	out, ok := p.Stdout.(*Output)
	return ok && term.IsTerminal(out.W)
}

// Clock returns a clock that tells the time by Now. Its waits are real.
func (p Env) Clock() Clock { return Clock{p.Now} }

// Clock tells the time by a function and waits in real time.
type Clock struct{ now func() time.Time }

// Now returns the time.
func (c Clock) Now() time.Time { return c.now() }

// After returns a channel that delivers the time after d.
func (Clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// Output keeps the first error of its writes, so that commands need not check each one.
type Output struct {
	W   io.Writer
	Err error
}

// Write writes to W, unless an earlier write has failed.
func (o *Output) Write(text []byte) (n int, err error) {
	if o.Err == nil {
		n, o.Err = o.W.Write(text)
	}
	return n, o.Err
}
