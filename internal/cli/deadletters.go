package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime"
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

// deadLetter is a line.
type deadLetter struct {
	Error    string     `json:"error"`
	Shard    string     `json:"shard"`
	Sequence string     `json:"sequence"`
	At       time.Time  `json:"at"`
	Old      *deadImage `json:"old"`
	New      *deadImage `json:"new"`
}

// deadImage is an item as DynamoDB's own JSON has it: by attribute, the type, and what that holds. Values that no item of sluice
// has, sets and lists and such, are null.
type deadImage map[string]map[string]*string

// put writes a record, in one write, and has it stay: the stream's position moves past it.
func (d *deadLetters) put(_ context.Context, p usage.Poison) error {
	line, err := json.Marshal(deadLetter{
		Error: p.Err.Error(), Shard: p.Shard, Sequence: p.Record.Sequence, At: p.Record.At,
		Old: deadImageOf(p.Record.Old), New: deadImageOf(p.Record.New),
	})
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

func deadImageOf(img runtime.Image) *deadImage {
	if img == nil {
		return nil
	}
	all := deadImage{}
	img.Each(func(name string) bool {
		kind, text := img.Attr(name)
		all[name] = map[string]*string{kind: nil}
		if kind == "S" || kind == "N" {
			all[name][kind] = &text
		}
		return true
	})
	return &all
}

// close closes the file, if there is one.
func (d *deadLetters) close() error {
	if d.file == nil {
		return nil
	}
	return d.file.Close()
}
