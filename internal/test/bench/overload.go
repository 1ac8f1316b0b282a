package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// The refill of resource scarce, and how many times as much is asked of it.
const (
	scarcePerSecond = 50
	overload        = 10
)

// readPrice is a read unit in write units: what AWS asks for it.
const readPrice = 0.2

// overloadExperiments are on what denials cost, and whether those who could be admitted are.
func overloadExperiments(c conditions) []experiment {
	return []experiment{
		overloaded("1 process", 1, atMost(0), c),
		overloaded("4 processes", 4, atMost(0.4), c),
		overloaded("16 processes", 16, bound{}, c),
	}
}

// overloaded offers a bucket ten times what it refills, by so many processes. The price of denials is that of
// all reads and of all writes whose condition failed: what is applied, admits. A call that lost every race
// counts as denied too, with its cost.
func overloaded(who string, processes int, price bound, c conditions) experiment {
	what := fmt.Sprintf("%dx overload, %s: ", overload, who)
	return experiment{
		rows: []row{
			{what + "units per denial, a read at 0.2", []figure{
				{name: "units, reads at their price", format: "%.2f", want: price},
				{name: "units", format: "%.2f raw"},
				{name: "contended, percent of the denials", format: "%.1f%% lost every race"},
			}},
			{what + "admitted share of the allowance", []figure{
				{name: "share", format: "%.3f", want: atLeast(0.98)},
			}},
		},
		measure: func(ctx context.Context) ([]float64, error) {
			w, err := newWorld(ctx, c.oneWay)
			if err != nil {
				return nil, err
			}
			callers, err := w.scarceCallers(processes)
			if err != nil {
				return nil, err
			}
			if err := once(ctx, callers); err != nil {
				return nil, err
			}
			before, from, err := w.scarce(ctx)
			if err != nil {
				return nil, err
			}
			w.engine.ResetConsumed()
			var after generated.ScarceBucket
			var until int64
			o, err := openLoop(ctx, callers, overload*scarcePerSecond, 3*c.load, func() (err error) {
				after, until, err = w.scarce(ctx)
				return err
			})
			if err != nil {
				return nil, err
			}
			denials := float64(o.denied + o.contended)
			if denials == 0 {
				return nil, fmt.Errorf("none of %d calls was denied", o.admitted)
			}
			used := w.consumed()
			used.readUnits-- // the bucket's, at the end
			allowance := bucket.Available(before.RPS, before.Refilled, from) + bucket.Refill(before.RPS.Limit, from,
				until)
			return []float64{
				(used.refusedUnits + readPrice*used.readUnits) / denials,
				(used.refusedUnits + used.readUnits) / denials,
				100 * float64(o.contended) / denials,
				float64(after.RPS.Consumed-before.RPS.Consumed) / float64(allowance),
			}, nil
		},
	}
}

// scarceCallers returns a caller of the overloaded bucket for each of so many new processes.
func (w *world) scarceCallers(processes int) ([]caller, error) {
	callers := make([]caller, processes)
	for i := range callers {
		process, err := w.process()
		if err != nil {
			return nil, err
		}
		var who generated.ScarceEntity = generated.Project{ID: "scarce"}
		callers[i] = func(ctx context.Context) error {
			_, err := process.Scarce.Acquire(ctx, who, generated.ScarceCost{})
			return err
		}
	}
	return callers, nil
}

// scarce reads the bucket that is overloaded, and returns the instant that it was read at, in milliseconds.
func (w *world) scarce(ctx context.Context) (b generated.ScarceBucket, at int64, err error) {
	began := time.Now()
	out, err := w.engine.Client().GetItem(ctx, &dynamodb.GetItemInput{
		TableName: aws.String(table),
		Key: codec.Item{"PK": codec.S("ENTITY#project-scarce"),
			"SK": codec.S("#BUCKET#" + generated.Scarce)},
		ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		return b, 0, err
	}
	at = began.Add(time.Since(began) / 2).UnixMilli() // there and back take the same time
	return b, at, b.UnmarshalItem(out.Item)
}

// openLoop has the callers call at random instants for d, rate times a second all together, without waiting
// for earlier answers. Then it calls end, and waits for the last answers. It returns how calls ended.
func openLoop(
	ctx context.Context, callers []caller, rate float64, d time.Duration, end func() error,
) (outcome, error) {
	var all tally
	var arriving, running sync.WaitGroup
	mean := float64(len(callers)) / rate * float64(time.Second)
	began := time.Now()
	for i, call := range callers {
		rng := rand.New(rand.NewPCG(uint64(i), 2))
		arriving.Go(func() {
			for at := time.Duration(0); ctx.Err() == nil; {
				at += time.Duration(mean * rng.ExpFloat64())
				if at >= d {
					return
				}
				time.Sleep(time.Until(began.Add(at)))
				running.Go(func() {
					var own outcome
					err := own.add(call(ctx))
					all.add(own, err)
				})
			}
		})
	}
	arriving.Wait()
	all.add(outcome{}, end())
	running.Wait()
	return all.sum, all.err
}
