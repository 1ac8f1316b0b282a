package aggregate

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/usage"
)

// poison is a record that cannot be read.
func poison() usage.Poison {
	return usage.Poison{Shard: "shardId-1", Record: codec.Record{Sequence: "1"}, Err: errors.New("unreadable")}
}

// narrow takes left bytes, and no more until left is raised.
type narrow struct {
	strings.Builder
	left int
}

func (f *narrow) Write(text []byte) (int, error) {
	n, _ := f.Builder.Write(text[:min(len(text), f.left)])
	if n < len(text) {
		return n, io.ErrShortWrite
	}
	return n, nil
}

// TestDeadLettersFull: a line that was cut off does not damage the next one, whichever process wrote it.
func TestDeadLettersFull(t *testing.T) {
	w := &narrow{left: 10}
	d := &deadLetters{w: w}
	if err := d.put(t.Context(), poison()); !errors.Is(err, io.ErrShortWrite) || d.n.Load() != 0 {
		t.Fatalf("got %v", err)
	}
	w.left = 1000
	for range 2 {
		if err := d.put(t.Context(), poison()); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(w.String(), "\n"), "\n")
	if len(lines) != 3 || !json.Valid([]byte(lines[1])) || !json.Valid([]byte(lines[2])) {
		t.Errorf("got %q", lines)
	}

	name := filepath.Join(t.TempDir(), "poisoned.jsonl")
	if err := os.WriteFile(name, []byte(`{"error":"kill`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		d, err := openDeadLetters(&name, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(d.put(t.Context(), poison()), d.close()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines = strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) != 3 || !json.Valid([]byte(lines[1])) || !json.Valid([]byte(lines[2])) {
		t.Errorf("got %q", lines)
	}
}
