package program

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
)

// env is what commands use of their process. Results go to Stdout, progress and errors to Stderr.
type Env struct {
	Stdout, Stderr io.Writer
	Now            func() time.Time
}

// say prints a result. Output.Err has the error, if it cannot be written.
func (p Env) Say(format string, args ...any) { _, _ = fmt.Fprintf(p.Stdout, format, args...) }

// note prints progress or an error. An error of the write is dropped: there is no other place to report it.
func (p Env) Note(format string, args ...any) { _, _ = fmt.Fprintf(p.Stderr, format, args...) }

// print prints text, or returns err if there is one.
func (p Env) Print(text []byte, err error) error {
	if err == nil {
		p.Say("%s", text)
	}
	return err
}

// json prints v as indented JSON.
func (p Env) Json(v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	p.Say("%s\n", text)
	return nil
}

// screen reports whether results go to a terminal.
func (p Env) Screen() bool {
	out, ok := p.Stdout.(*Output)
	return ok && term.IsTerminal(out.W)
}

// clock returns Now as a clock. Its waits are real.
func (p Env) Clock() clock { return clock{p.Now} }

// clock tells the time by a function, and waits in real time.
type clock struct{ now func() time.Time }

// Now returns the time.
func (c clock) Now() time.Time { return c.now() }

// After returns a channel that delivers the time after d.
func (clock) After(d time.Duration) <-chan time.Time { return time.After(d) }

// output keeps the first error of W. Commands need not check each write: the error is reported once, after the command.
type Output struct {
	W   io.Writer
	Err error
}

// Write writes to W unless an earlier write has failed.
func (o *Output) Write(text []byte) (n int, err error) {
	if o.Err == nil {
		n, o.Err = o.W.Write(text)
	}
	return n, o.Err
}
