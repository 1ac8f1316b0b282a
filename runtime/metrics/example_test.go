package metrics_test

import (
	"context"
	"expvar"
	"fmt"
	"log"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/metrics"
)

// Counters in this process, for /debug/vars and a health page.
func Example() {
	ctx, client := context.Background(), memdynamo.New().Client()
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil {
		log.Fatal(err)
	}

	counters := &metrics.Counters{}
	expvar.Publish("sluice", counters)
	lim, err := limits.New(dynamo.New(client, "rate_limits"), runtime.WithObserver(metrics.Observer(counters)))
	if err != nil {
		log.Fatal(err)
	}

	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	for range 3 {
		_, _ = lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 6_000})
	}
	now := counters.Snapshot()
	fmt.Println(now.Sum(metrics.Decisions, metrics.Resource, "gpt-4", metrics.Outcome, "acquired"), "acquired")
	fmt.Println(now.Sum(metrics.Decisions, metrics.LimitName, "tpm"), "denied by tpm")
	fmt.Println(now.Sum(metrics.StoreCapacity, metrics.Capacity, "write"), "write units")
	// Output:
	// 2 acquired
	// 1 denied by tpm
	// 12 write units
}
