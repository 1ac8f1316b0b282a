package migrate

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestFaults: what is lost on the way, throttled or left undone is done again, once, without anybody's help.
func TestFaults(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				engine := memdynamo.New(memdynamo.WithSeed(seed))
				tbl := &table{t, engine.Client(), "rate_limits"}
				if _, err := tbl.client.CreateTable(t.Context(), operator.Table(tbl.name)); err != nil {
					t.Fatal(err)
				}
				tbl.put(users(100)...)
				calm := func(job Job) *Report {
					engine.Faults().Clear()
					c := tbl.config(job, nil)
					c.Now = time.Now
					return tbl.run(c)
				}
				rough := func(job Job) *Report {
					f := engine.Faults()
					f.LoseReplies(0.04)
					f.LoseRequests(0.04)
					f.LateInternalErrors(0.03)
					f.Throttle(0.05)
					f.Conflict(0.05)
					f.Unprocessed(0.2)
					c := tbl.config(job, nil)
					c.Now, c.page = time.Now, 20
					return tbl.run(c)
				}
				if r := rough(Convert); len(r.Wrong)+len(r.Beside) > 0 || r.Converted.Buckets+r.Converted.There != 100 {
					t.Errorf("%+v, %+v", r, r.Converted)
				}
				if r := calm(Verify); r.Checked.Buckets != 100 || len(r.Wrong)+len(r.Left) > 0 {
					t.Errorf("%+v, %+v", r, r.Checked)
				}
				if r := rough(Verify); r.Checked.Buckets != 100 || len(r.Wrong)+len(r.Left) > 0 {
					t.Errorf("roughly: %+v, %+v", r, r.Checked)
				}
				if r := rough(Cleanup); r.Cleaned.Deleted != 200 || !r.Cleaned.Done || len(r.Left) > 0 {
					t.Errorf("%+v, %+v", r, r.Cleaned)
				}
				engine.Faults().Clear()
				if layout := tbl.layout(); layout != 1 || len(tbl.all()) != 101 {
					t.Errorf("layout %d, %d items", layout, len(tbl.all()))
				}
			})
		})
	}
}
