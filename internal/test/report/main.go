// Command report runs `go test -json` with its arguments and prints what `go test` prints without -json. At
// the end it lists what the tests left out and which of them were skipped, with the reasons, and the seeds of
// rapid's checks that failed. It exits with 1 if `go test` failed.
//
//	go run ./internal/test/report ./...
package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// module is cut from the names of packages.
const module = "github.com/sluice-go/sluice/"

// event is a line of `go test -json`: see go doc test2json.
type event struct {
	Action, Package, Test, Output, Key, Value string
}

// run is what was seen so far.
type run struct {
	out     io.Writer
	pending map[string]*strings.Builder // the output of each package, and of each test that has not ended
	leftOut []string
	skipped map[string][]string // the tests by reason
	repeats []string            // how rapid says to repeat what failed
	failed  bool
}

func main() {
	failed, err := test(os.Args[1:])
	if err != nil {
		log.Fatal(err)
	}
	if failed {
		os.Exit(1)
	}
}

// test runs `go test -json` with the arguments, and says whether it failed. An error is one of starting or
// reading it.
func test(args []string) (failed bool, err error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	failed, err = report(out, os.Stdout)
	if err != nil {
		return failed, errors.Join(err, cmd.Wait())
	}
	if err := cmd.Wait(); err != nil {
		if _, exited := errors.AsType[*exec.ExitError](err); !exited {
			return failed, err
		}
		failed = true
	}
	return failed, nil
}

// report copies what `go test -json` prints, and says whether a test or a build failed.
func report(in io.Reader, out io.Writer) (failed bool, err error) {
	buffered := bufio.NewWriter(out)
	r := &run{out: buffered, pending: map[string]*strings.Builder{}, skipped: map[string][]string{}}
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(line)
			if flushed := buffered.Flush(); flushed != nil {
				return r.failed, flushed
			}
		}
		if err == io.EOF {
			r.summary()
			return r.failed, buffered.Flush()
		}
		if err != nil {
			return r.failed, err
		}
	}
}

// line takes a line of the input. One that is no event, such as a message of the go command, is printed as it
// is.
func (r *run) line(line []byte) {
	var e event
	if line[0] != '{' || json.Unmarshal(line, &e) != nil {
		r.print(string(line))
		return
	}
	at := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		r.print(e.Output)
	case "build-fail":
		r.failed = true
	case "output":
		r.output(e, at)
	case "attr":
		if e.Key == longform.Attribute {
			r.leftOut = append(r.leftOut, short(e)+": "+e.Value)
		}
	case "pass":
		delete(r.pending, at)
	case "skip":
		if e.Test != "" {
			why := reason(r.take(at))
			r.skipped[why] = append(r.skipped[why], short(e))
		}
	case "fail":
		r.failed = true
		text := r.take(at)
		for _, how := range repeat.FindAllStringSubmatch(text, -1) {
			r.repeats = append(r.repeats, strings.TrimPrefix(e.Package, module)+" "+how[1])
		}
		r.print(text)
	}
}

// output keeps what a test prints until it is known whether it fails. Of what a package prints, a pass and
// its lines for tools are left out.
func (r *run) output(e event, at string) {
	if e.Test == "" {
		if e.Output != "PASS\n" && !strings.HasPrefix(e.Output, "=== ") {
			r.print(e.Output)
		}
		return
	}
	if r.pending[at] == nil {
		r.pending[at] = &strings.Builder{}
	}
	if !strings.HasPrefix(e.Output, "=== ") {
		r.pending[at].WriteString(e.Output)
	}
}

// take returns what a test printed, and forgets it.
func (r *run) take(at string) string {
	text := r.pending[at]
	delete(r.pending, at)
	if text == nil {
		return ""
	}
	return text.String()
}

// summary prints what was left out and skipped. Tests that did not end, as those of a panic, have their
// output printed first.
func (r *run) summary() {
	for _, at := range slices.Sorted(maps.Keys(r.pending)) {
		if r.failed {
			r.print(r.take(at))
		}
	}
	if len(r.leftOut) > 0 {
		r.print("\nLeft out; `make test-long` runs them, as CI does:\n")
		for _, line := range slices.Sorted(slices.Values(r.leftOut)) {
			r.print("  " + line + "\n")
		}
	}
	if len(r.skipped) > 0 {
		r.print("\nSkipped:\n")
	}
	for _, why := range slices.SortedFunc(maps.Keys(r.skipped), cmp.Compare) {
		tests := r.skipped[why]
		slices.Sort(tests)
		if len(tests) > 3 {
			tests = append(tests[:3:3], fmt.Sprintf("and %d more", len(tests)-3))
		}
		r.print("  " + why + "\n      " + strings.Join(tests, ", ") + "\n")
	}
	if len(r.repeats) > 0 {
		r.print("\nFailed; go test repeats it with:\n")
	}
	for _, line := range r.repeats {
		r.print("  " + line + "\n")
	}
}

func (r *run) print(text string) { _, _ = io.WriteString(r.out, text) } // Flush returns an error

// repeat is the line of rapid that has the seed of a check that failed.
var repeat = regexp.MustCompile(`(?m)^\s*To (?:try to )?reproduce, specify (-run=.*)$`)

// place is what stands before the text of a line that a test logs, or after it.
var place = regexp.MustCompile(`(?m)^\s*[\w.-]+\.go:\d+: |^\s*--- SKIP: .*$`)

// reason is the text with which a test was skipped.
func reason(output string) string {
	lines := strings.Split(strings.TrimSpace(place.ReplaceAllString(output, "")), "\n")
	return cmp.Or(strings.TrimSpace(lines[len(lines)-1]), "no reason is given")
}

// short names a test with its package.
func short(e event) string { return strings.TrimPrefix(e.Package, module) + " " + e.Test }
