package migrate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// bill is an API that notes what is written, and when.
type bill struct {
	mu    sync.Mutex
	began time.Time
	units int
	fast  []string // writes that came before their time, at rate
	rate  int
}

func (b *bill) to(api API) *tap {
	return &tap{API: api, around: func(_ context.Context, in any, do func() error) error {
		units := 0
		switch in := in.(type) {
		case *dynamodb.TransactWriteItemsInput:
			if in.TransactItems[0].Put != nil { // else it ends the run
				units = convertUnits(len(in.TransactItems) - 1)
			}
		case *dynamodb.PutItemInput, *dynamodb.DeleteItemInput:
			units = 1
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		b.units += units
		if elapsed := time.Since(b.began) + time.Microsecond; units > 0 &&
			time.Duration(b.units)*time.Second > time.Duration(b.rate)*elapsed {
			b.fast = append(b.fast, fmt.Sprintf("%d units after %v", b.units, elapsed))
		}
		return do()
	}}
}

// bubble is a table within a bubble of testing/synctest, where time is virtual.
func bubble(t *testing.T) *table {
	t.Helper()
	client := memdynamo.New().Client()
	tbl := &table{t, client, "rate_limits"}
	if _, err := client.CreateTable(t.Context(), operator.Table(tbl.name)); err != nil {
		t.Fatal(err)
	}
	return tbl
}

// TestPace: no more is written than the rate allows, from the first write on, whatever segments there are;
// and no less, but for the second that may be saved up.
func TestPace(t *testing.T) {
	for _, test := range []struct{ segments, rate int }{{1, 50}, {4, 50}, {4, 3}, {16, 1}} {
		t.Run(fmt.Sprint(test), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tbl := bubble(t)
				tbl.put(users(30)...)
				b := &bill{began: time.Now(), rate: test.rate}
				c := tbl.config(Convert, b.to(tbl.client))
				c.Segments, c.Units, c.Now = test.segments, test.rate, time.Now
				r := tbl.run(c)
				if len(b.fast) > 0 || r.Converted.Buckets != 30 {
					t.Errorf("%d writes were early: %v", len(b.fast), b.fast)
				}
				took, least := time.Since(b.began), time.Duration(b.units)*time.Second/time.Duration(test.rate)
				if took > least+time.Second {
					t.Errorf("%d units took %v, want %v", b.units, took, least)
				}
				if r.Seconds != took.Seconds() {
					t.Errorf("the report says %vs, it took %v", r.Seconds, took)
				}

				*b = bill{began: time.Now(), rate: test.rate}
				c.Job = Cleanup
				if r := tbl.run(c); len(b.fast) > 0 || r.Cleaned.Deleted != 60 {
					t.Errorf("%d deletes were early: %v", len(b.fast), b.fast)
				}
			})
		})
	}

	// The control: without a rate all is early.
	synctest.Test(t, func(t *testing.T) {
		tbl := bubble(t)
		tbl.put(users(30)...)
		b := &bill{began: time.Now(), rate: 50}
		c := tbl.config(Convert, b.to(tbl.client))
		c.Now = time.Now
		if tbl.run(c); len(b.fast) < 30 {
			t.Errorf("%d writes were early", len(b.fast))
		}
	})
}

// TestPaceInterrupted: who waits for a rate need not wait for its end.
func TestPaceInterrupted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tbl := bubble(t)
		tbl.put(users(3)...)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		c := tbl.config(Convert, nil)
		c.Units, c.Now = 1, time.Now
		r, err := Run(ctx, c)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Second || r.Complete ||
			r.Converted.Buckets != 0 {
			t.Errorf("after %v: %v, %+v", time.Since(began), err, r)
		}
	})
}
