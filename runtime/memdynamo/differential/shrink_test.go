package differential_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// recorder is a test that may fail, and what it printed.
type recorder struct {
	testing.TB
	text   strings.Builder
	failed bool
}

func (r *recorder) Helper()      {}
func (r *recorder) Failed() bool { return r.failed }
func (r *recorder) Fail()        { r.failed = true }

func (r *recorder) FailNow() {
	r.failed = true
	runtime.Goexit()
}

func (r *recorder) Log(args ...any)                 { fmt.Fprintln(&r.text, args...) }
func (r *recorder) Logf(format string, args ...any) { fmt.Fprintf(&r.text, format+"\n", args...) }

func (r *recorder) Errorf(format string, args ...any) {
	r.failed = true
	r.Logf(format, args...)
}

func (r *recorder) Fatal(args ...any) {
	r.Log(args...)
	r.FailNow()
}

// TestFailureIsShrunk lets the test fail, and holds what it prints to be of few operations that can be read.
func TestFailureIsShrunk(t *testing.T) {
	longform.Only(t, "shrinking takes 15 s; TestComparisonCatches finds the same failures, unshrunk")
	setFlag(t, "rapid.nofailfile", "true")
	setFlag(t, "rapid.seed", "1")
	setFlag(t, "rapid.shrinktime", "15s") // a third of it leaves two operations, where nothing slows it down
	p := &pair{memorySide(), memorySide(), newReport()}
	p.ours.wire.before = replace("UpdateItem", `(?i)(remove )(c|v|l|str)\b`, "${1}nowhere")
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		check(t.Context(), r, mixes[0], p)
	}()
	<-done
	text := r.text.String()
	_, text, _ = strings.Cut(text, "draw history: ")
	drawn, _, found := strings.Cut(text, "differ")
	operations := strings.Count(drawn, `"TableName":`)
	if !r.failed || !found || operations == 0 || operations > 8 || !strings.Contains(drawn, `    UpdateItem {`) {
		t.Errorf("%d operations are left of a history:\n%s", operations, text)
	}
	t.Log(drawn)
}
