package docs_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

// TestDocsRegionsTrial runs the lines by which docs/regions.md is tried on one machine: those that end in &
// until each has had a cycle, on ports that are free.
func TestDocsRegionsTrial(t *testing.T) {
	_, block, _ := strings.Cut(read(t, "docs/regions.md"), "```sh\n")
	block, _, _ = strings.Cut(block, "```")
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	defer func() {
		cancel()
		running.Wait()
	}()
	block = strings.ReplaceAll(block, "/tmp/limits", filepath.Join(t.TempDir(), "limits"))
	t.Setenv("AWS_REGION", "")
	t.Chdir("examples/regionsync")
	var places, cycles int
	for strings.Contains(block, "\n") {
		line, rest, _ := strings.Cut(block, "\n")
		block = rest
		words := strings.Fields(line)
		switch {
		case words[0] == "mkdir":
			if err := os.Mkdir(words[1], 0o755); err != nil {
				t.Fatal(err)
			}
		case words[0] == "export":
			name, value, _ := strings.Cut(words[1], "=")
			t.Setenv(name, value)
		case strings.HasSuffix(line, " &"):
			args, port := words[1:len(words)-1], ""
			if i := slices.Index(args, "--port"); i >= 0 {
				args[i+1], port = "0", args[i+1]
			}
			says := make(chan string, 100)
			running.Go(func() {
				if code := (cli.Program{Stdout: sender(says), Stderr: sender(says), Now: time.Now}).Run(ctx,
					args); code != 0 {
					t.Errorf("%s: exit code %d", line, code)
				}
				close(says)
			})
			first := <-says
			if at := regexp.MustCompile("http://[0-9.:]+").FindString(first); port != "" && at != "" {
				block, places = strings.ReplaceAll(block, "http://127.0.0.1:"+port, at), places+1
			}
			if strings.HasPrefix(first, "cycle 1: 0 quotas, 0 writes, epoch 1 begins: ") {
				cycles++
			}
		default:
			var out strings.Builder
			if code := (cli.Program{Stdout: &out, Stderr: &out, Now: time.Now}).Run(ctx, words[1:]); code != 0 ||
				!strings.Contains(out.String(), "\nus-east-1     unseen ") {
				t.Errorf("%s: exit code %d\n%s", line, code, &out)
			}
		}
	}
	if places != 2 || cycles != 2 {
		t.Errorf("%d tables, %d syncs that had a cycle", places, cycles)
	}
}

// sender sends what is written: what nobody waits for is dropped.
type sender chan<- string

// Write implements io.Writer.
func (w sender) Write(p []byte) (int, error) {
	select {
	case w <- string(p):
	default:
	}
	return len(p), nil
}
