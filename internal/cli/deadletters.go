package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/usage"
)

// deadLetters are records that could not be read: each one a line of JSON that has all there is to know.
type deadLetters struct {
	w     io.Writer
	file  *os.File // nil where w is none
	where string
	n     atomic.Int64
}

// openDeadLetters appends to a file, or, without one, writes to otherwise.
func openDeadLetters(name *string, otherwise io.Writer) (*deadLetters, error) {
	if name == nil {
		return &deadLetters{w: otherwise, where: "the lines above"}, nil
	}
	file, err := os.OpenFile(*name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--poisoned: %w", err)
	}
	return &deadLetters{w: file, file: file, where: *name}, nil
}

// put writes a record, in one write, and has it stay: the stream's position moves past it.
func (d *deadLetters) put(_ context.Context, p usage.Poison) error {
	line, err := json.Marshal(p)
	if err != nil {
		return err
	}
	if _, err := d.w.Write(append(line, '\n')); err != nil {
		return err
	}
	d.n.Add(1)
	if d.file == nil {
		return nil
	}
	return d.file.Sync()
}

// close closes the file, if there is one.
func (d *deadLetters) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
