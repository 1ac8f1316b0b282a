package docs_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// The functions below are quoted in docs/api.md; docs_test.go holds the two together.

func open(ctx context.Context) (*limits.Limiter, error) {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return nil, err
	}
	lim, err := limits.New(dynamo.New(dynamodb.NewFromConfig(cfg), "rate_limits")) // no I/O
	if err != nil {
		return nil, err
	}
	return lim, lim.Check(ctx) // before serving: the table is there and right, the clock is too
}

// complete reserves the estimate, of the user and of the project, calls the model, settles what was used.
func complete(ctx context.Context, gpt limits.GPT4Acquirer, user limits.User, prompt string) (string, error) {
	lease, err := gpt.Acquire(ctx, user, limits.GPT4Cost{TPM: estimate(prompt)}) // RPM: per_call 1
	if err != nil {
		return "", err
	}
	defer lease.Release(ctx) // does nothing once settled; works though the client has gone
	reply, used, err := model(ctx, prompt)
	if used > 0 { // also when the model broke off half way
		err = errors.Join(err, lease.Settle(ctx, limits.GPT4Cost{TPM: used}))
	}
	return reply, err
}

// estimate is how many tokens a call may take.
func estimate(prompt string) int64 { return int64(len(prompt))/4 + 300 }

// model stands for what costs tokens.
func model(context.Context, string) (reply string, used int64, err error) { return "something", 4, nil }

func denial(ctx context.Context, lim *limits.Limiter, user limits.User) error {
	_, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1200})
	if denied, ok := errors.AsType[*limits.DeniedError](err); ok {
		log.Printf("%s of %s: %d of %d tokens, retry after %v",
			denied.Limit, denied.Entity, denied.Available, denied.Requested, denied.RetryAfter)
	}
	return err
}

func others(ctx context.Context, w io.Writer, lim *limits.Limiter, user limits.User) error {
	// Wait sleeps until the tokens are there, first come first served; at once an error if that is too late.
	lease, err := lim.GPT4.Wait(ctx, user, limits.GPT4Cost{TPM: 500}, runtime.MaxWait(time.Minute))
	if err != nil {
		return err
	}
	log.Printf("took %d tokens, %d are left", lease.Cost().TPM, lease.Remaining().TPM) // neither reads
	lease.Release(ctx)

	// Do acquires, calls, and gives back if the call fails without having settled.
	cost := limits.GPT4Cost{TPM: 500}
	err = lim.GPT4.Do(ctx, user, cost, func(ctx context.Context, l *limits.GPT4Lease) error {
		return l.Settle(ctx, limits.GPT4Cost{TPM: 420})
	})
	if err != nil {
		return err
	}

	// Peek reads and changes nothing.
	snap, err := lim.GPT4.Peek(ctx, user)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(w, "tokens left:", snap.Available.TPM)
	return err
}

func both(ctx context.Context, lim *limits.Limiter, user limits.User) error {
	chat := lim.GPT4.Claim(user, limits.GPT4Cost{TPM: 900})
	texts := lim.Embeddings.Claim(user.Project, limits.EmbeddingsCost{RPS: 2})
	if err := lim.AcquireAll(ctx, chat, texts); err != nil {
		return err // neither
	}
	return chat.Lease().Settle(ctx, limits.GPT4Cost{TPM: 850})
}

func lookUp(ctx context.Context, lim *limits.Limiter) error {
	// When a user is created. `sluice entity put user-123 --parent project-1` does the same.
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	if err := lim.Entities().Put(ctx, user); err != nil {
		return err
	}
	// If only the id is at hand.
	_, err := lim.GPT4.Acquire(ctx, limits.UserByID("123"), limits.GPT4Cost{TPM: 500})
	return err
}

func override(ctx context.Context, lim *limits.Limiter) error {
	project := lim.Config.GPT4.Entity(limits.Project{ID: "1"}) // all projects: Kind(limits.Project{})
	_, revision, err := project.Get(ctx)
	if err != nil {
		return err
	}
	changed := limits.GPT4Limits{TPM: &runtime.Rate{Capacity: 500_000, Burst: 600_000}} // RPM inherits
	_, err = project.Set(ctx, changed, revision)
	if conflict, ok := errors.AsType[*limits.ConflictError](err); ok {
		log.Print(conflict) // somebody has changed it since Get: read it again
	}
	return err
}

// refill raises a limit for a user who waits, and forgives what its project owes.
func refill(ctx context.Context, lim *limits.Limiter) error {
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	override := lim.Config.GPT4.Entity(user)
	_, revision, err := override.Get(ctx)
	if err != nil {
		return err
	}
	raised := limits.GPT4Limits{TPM: &runtime.Rate{Capacity: 20_000}}
	if _, err := override.Set(ctx, raised, revision, runtime.Refill()); err != nil {
		return err
	}
	return lim.Config.GPT4.Reset(ctx, user.Project) // its limits stay; its bucket is full, and has no debt
}

// Example is what the functions above come to in a program.
func Example() {
	ctx := context.Background()
	lim, err := open(ctx)
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = lim.Close(ctx) }() // waits for writes that run in the background
	user := limits.User{ID: "123", Project: limits.Project{ID: "1", Org: limits.Org{ID: "acme"}}}
	err = errors.Join(
		denial(ctx, lim, user), others(ctx, log.Writer(), lim, user), both(ctx, lim, user),
		lookUp(ctx, lim), override(ctx, lim), refill(ctx, lim),
	)
	if err != nil {
		log.Print(err)
	}
}
