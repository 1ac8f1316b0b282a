package runtime_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
)

// A denied call has the limit that denied it and the time after which it fits. It is charged nothing.
func ExampleResource_Acquire() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		lease, err := lim.GPT4.Acquire(ctx, ada, limits.GPT4Cost{TPM: 9_000}) // RPM: per_call 1
		if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
			fmt.Printf("%s of %s, %d tokens: retry later: %t\n", denied.Limit, denied.Entity, denied.Requested,
				denied.RetryAfter > 0)
			continue
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println("took", lease.Cost())
	}
	// Output:
	// took GPT4Cost{RPM:1 TPM:9000}
	// tpm of user-ada, 9000 tokens: retry later: true
}

// A stream that becomes longer than its estimate takes more tokens with the same lease.
func ExampleLease_More() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	lease, err := lim.GPT4.Acquire(ctx, ada, limits.GPT4Cost{TPM: 500})
	if err != nil {
		fmt.Println(err)
		return
	}
	sent, reserved := int64(0), lease.Cost().TPM
	for _, chunk := range []int64{300, 400, 100} {
		if sent+chunk > reserved {
			if err := lease.More(ctx, limits.GPT4Cost{TPM: 500}); err != nil {
				break // what was sent is charged below
			}
			reserved += 500
		}
		sent += chunk
	}
	fmt.Println("reserved", lease.Cost().TPM, "sent", sent)
	fmt.Println(lease.Settle(ctx, limits.GPT4Cost{TPM: sent}))
	fmt.Println(lease.Settle(ctx, limits.GPT4Cost{TPM: sent}))
	// Output:
	// reserved 1000 sent 800
	// <nil>
	// sluice: the lease was settled, kept or released before
}

// Calls of two resources are charged together, or neither is.
func ExampleLimiter_AcquireAll() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		chat := lim.GPT4.Claim(ada, limits.GPT4Cost{TPM: 9_000})
		texts := lim.Embeddings.Claim(ada.Project, limits.EmbeddingsCost{RPS: 2})
		if err := lim.AcquireAll(ctx, chat, texts); err != nil {
			denied, _ := errors.AsType[*limits.DeniedError](err)
			fmt.Println(denied.Resource, "has too few of", denied.Limit)
			continue
		}
		fmt.Println("took", chat.Lease().Cost().TPM, "and", texts.Lease().Cost().RPS)
	}
	// Output:
	// took 9000 and 2
	// gpt-4 has too few of tpm
}

// Wait fails at once if the tokens come too late, and then charges nothing.
func ExampleResource_Wait() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	patient := lim.GPT4.With(runtime.MaxWait(5 * time.Second))
	for _, tokens := range []int64{14_000, 9_000} {
		lease, err := patient.Wait(ctx, ada, limits.GPT4Cost{TPM: tokens})
		if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
			fmt.Println(denied.Limit, "is too late:", errors.Is(err, context.DeadlineExceeded))
		} else if err == nil {
			fmt.Println("took", lease.Cost().TPM)
		}
	}
	// Output:
	// took 14000
	// tpm is too late: true
}

// An override gives one project other numbers than limits.yaml. A process sees it within a minute, and the
// one that writes it at once.
func ExampleConfig() {
	ctx := context.Background()
	lim, err := newLimiter(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	project := lim.Config.GPT4.Entity(ada.Project) // all projects: Kind(ada.Project)
	_, revision, err := project.Get(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	raised := limits.GPT4Limits{TPM: &runtime.Rate{Capacity: 500_000}} // RPM inherits
	if _, err := project.Set(ctx, raised, revision); err != nil {
		fmt.Println(err)
		return
	}
	_, err = project.Set(ctx, raised, revision) // the revision is the one before
	_, changed := errors.AsType[*limits.ConflictError](err)
	fmt.Println("changed since:", changed)

	snapshot, err := lim.GPT4.Peek(ctx, ada.Project)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("capacity:", snapshot.Buckets[0].Capacity)
	// Output:
	// changed since: true
	// capacity: GPT4Cost{RPM:1000 TPM:500000}
}
