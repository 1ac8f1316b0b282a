package aggregate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/usage"
)

// deadLetters writes records that cannot be read, each as a line of JSON.
type deadLetters struct {
	w     io.Writer
	file  *os.File // nil if w is no file
	keeps bool     // the file can be synced; a pipe cannot
	where string
	n     atomic.Int64

	mu   sync.Mutex
	torn bool // the last line is incomplete: the disk was full, or the writer was killed
}

// openDeadLetters appends to the file, or writes to otherwise if name is nil.
func openDeadLetters(name *string, otherwise io.Writer) (*deadLetters, error) {
	if name == nil {
		return &deadLetters{w: otherwise, where: "the lines above"}, nil
	}
	file, err := os.OpenFile(*name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("--poisoned: %w", err)
	}
	d := &deadLetters{w: file, file: file, where: *name}
	info, err := file.Stat()
	if err == nil && info.Mode().IsRegular() {
		d.keeps = true
		d.torn, err = endsWithin(*name, info.Size())
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("--poisoned: %w", err), file.Close())
	}
	return d, nil
}

// endsWithin reports whether a file of this size ends within a line.
func endsWithin(name string, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	file, err := os.Open(name)
	if err != nil {
		return false, err
	}
	last := make([]byte, 1)
	_, err = file.ReadAt(last, size-1)
	return last[0] != '\n', errors.Join(err, file.Close())
}

// put writes a record in one write and syncs it, since the stream's position then moves past it.
func (d *deadLetters) put(_ context.Context, p usage.Poison) error {
	line, err := term.JSON(p, "")
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.torn {
		line = slices.Insert(line, 0, '\n')
	}
	n, err := d.w.Write(append(line, '\n'))
	if d.torn = d.torn && n == 0 || n > 0 && err != nil; err != nil {
		return err
	}
	if d.keeps {
		if err := d.file.Sync(); err != nil {
			return err
		}
	}
	d.n.Add(1)
	return nil
}

// close closes the file, if there is one.
func (d *deadLetters) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
