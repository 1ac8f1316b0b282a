//go:build unix

package aggregate

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDeadLettersPipe: what takes lines and cannot be asked to keep them, as a pipe, is a place to put them.
func TestDeadLettersPipe(t *testing.T) {
	name := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	got := make(chan string, 1)
	go func() {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Error(err)
		}
		got <- string(text)
	}()
	d, err := openDeadLetters(&name, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.put(t.Context(), poison()); err != nil {
		t.Error(err)
	}
	if err := d.close(); err != nil {
		t.Error(err)
	}
	if text := <-got; strings.Count(text, "\n") != 1 || d.n.Load() != 1 {
		t.Errorf("got %q, and %d counted", text, d.n.Load())
	}
}
