package main

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// warmUp makes calls that nobody counts, so that the latencies of the report are not those of a Java VM that has just
// started.
func warmUp(ctx context.Context, client *dynamodb.Client, table string) error {
	const callers, calls = 8, 40
	lim, err := limits.New(dynamo.New(client, table), runtime.CallDefaults(runtime.Budget(budget)))
	if err != nil {
		return err
	}
	var (
		all  sync.WaitGroup
		once sync.Once
	)
	for i := range callers {
		user := limits.User{ID: "warm-up-" + string(rune('a'+i))}
		all.Go(func() {
			for range calls {
				lease, failed := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1})
				if _, denied := errors.AsType[*limits.DeniedError](failed); failed != nil && !denied {
					once.Do(func() { err = failed })
					return
				}
				lease.Release(ctx)
			}
		})
	}
	all.Wait()
	return errors.Join(err, lim.Close(ctx))
}

// budget is what an acquire may take. It is more than the default second, because the engine shares this machine with
// whatever else runs on it.
const budget = 5 * time.Second
