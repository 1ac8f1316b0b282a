// Package migrate carries the per-limit items of a table over to buckets, beside live acquires, and tidies up
// after that.
//
// Each job reads the table in parallel segments, page by page. Whatever it is in the middle of, it may be
// killed: a bucket is carried over in one transaction or not at all, what is marked is not read again, and
// the segments' positions are in the table, so that the next run goes on where this one was.
package migrate

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// API is the part of *dynamodb.Client that jobs call.
type API interface {
	dynamo.API
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// Job is what is to be done.
type Job string

// The jobs, in the order in which they are of use.
const (
	DryRun  Job = "dry-run" // says what Carry would do, and writes nothing
	Carry   Job = "carry"   // carries buckets over
	Verify  Job = "verify"  // holds items and buckets against each other, and writes nothing
	Cleanup Job = "cleanup" // deletes items that were taken over
)

// MostSegments is how many segments there can be: their checkpoints are deleted in one transaction.
const MostSegments = 100

// Config is what Run needs.
type Config struct {
	Job      Job
	Client   API
	Table    string
	Specs    []*store.Spec // of all resources of the schema
	Resource string        // the one to work on; empty for all
	Segments int           // 1 to MostSegments
	Units    int           // write units a second that may be used; 0 for any number
	Expired  bool          // Cleanup deletes what was taken over by a bucket that has expired, too

	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error // nil is the system's
	Progress io.Writer
	Terminal bool // Progress is one: the line is written over

	page int32 // items read at once; 0 is pageSize
}

// Run does the job and reports what it did, as far as it came, with an error where it did not come to its
// end: ctx's, a *store.SetupError or a *store.UnavailableError among others. Single buckets that cannot
// be carried over are in the report.
func Run(ctx context.Context, c Config) (*Report, error) {
	if c.Segments < 1 || c.Segments > MostSegments {
		return nil, fmt.Errorf("%d segments are out of range: use 1 to %d", c.Segments, MostSegments)
	}
	if c.Units < 0 {
		return nil, fmt.Errorf("%d write units a second are negative: use 1 or more, or 0 for no bound", c.Units)
	}
	r := newRun(c)
	err := r.job(ctx)
	r.progress.end(err == nil)
	report := r.report.close(err == nil, c.Now().Sub(r.began))
	if c.Units > 0 && c.Job == DryRun {
		report.Carried.Seconds = float64(report.Carried.Units) / float64(c.Units)
	}
	return report, err
}

// run is one Run.
type run struct {
	Config

	began    time.Time
	pace     *pace
	progress *progress
	report   *collector
}

func newRun(c Config) *run {
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.page == 0 {
		c.page = pageSize
	}
	r := &run{Config: c, began: c.Now(), report: newCollector(c)}
	r.pace = newPace(c.Units, c.Now, c.Sleep)
	r.progress = &progress{w: c.Progress, terminal: c.Terminal, now: c.Now, began: r.began, job: c.Job}
	return r
}

// job does what is to be done.
func (r *run) job(ctx context.Context) error {
	switch r.Job {
	case DryRun, Carry:
		return r.carry(ctx)
	case Verify:
		return r.verify(ctx)
	case Cleanup:
		return r.cleanup(ctx)
	}
	return fmt.Errorf("no job %q", r.Job)
}

// spec returns the schema's resource of that name, nil for none.
func (r *run) spec(resource string) *store.Spec {
	for _, spec := range r.Specs {
		if spec.Resource == resource {
			return spec
		}
	}
	return nil
}
