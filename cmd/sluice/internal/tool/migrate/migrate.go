// Package migrate converts the per-limit items of a table into buckets, beside live acquires, and verifies
// and deletes them afterwards.
//
// Each job reads the table in parallel segments, page by page. A job may be killed at any time: a bucket is
// converted in one transaction or not at all, and converted items are marked and not read again. The table
// holds the segments' positions, so that the next run resumes there.
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

// Job is a step of a migration.
type Job string

// The jobs, in the order in which operators run them.
const (
	DryRun  Job = "dry-run" // reports what Convert would do; writes nothing
	Convert Job = "carry"   // converts items into buckets
	Verify  Job = "verify"  // compares items with buckets; writes nothing
	Cleanup Job = "cleanup" // deletes converted items
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
	Expired  bool          // Cleanup also deletes items whose bucket has expired

	Now      func() time.Time
	Sleep    func(context.Context, time.Duration) error // nil is the system's
	Progress io.Writer
	Terminal bool // Progress is one: the line is written over

	page int32 // items read at once; 0 is pageSize
}

// Run does the job. It always reports what it did, also with an error; the report lists buckets that cannot
// be converted. A job that stops early returns one of these errors, among others:
//   - ctx's error
//   - a *store.SetupError
//   - a *store.UnavailableError
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
		report.Converted.Seconds = float64(report.Converted.Units) / float64(c.Units)
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

// job runs the configured job.
func (r *run) job(ctx context.Context) error {
	switch r.Job {
	case DryRun, Convert:
		return r.convert(ctx)
	case Verify:
		return r.verify(ctx)
	case Cleanup:
		return r.cleanup(ctx)
	}
	return fmt.Errorf("no job %q", r.Job)
}

// spec returns the schema's resource of that name, nil for none.
func (c *Config) spec(resource string) *store.Spec {
	for _, spec := range c.Specs {
		if spec.Resource == resource {
			return spec
		}
	}
	return nil
}
