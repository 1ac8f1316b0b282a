// Command budget is a gateway whose orgs have a monthly budget. It reserves money, streams the reply,
// reserves more while it streams, and settles what the provider reports.
package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"log"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/httplimit"

	"github.com/sluice-go/sluice/examples/budget/limits"
)

// delta is a part of a reply. The last one has the usage that the provider bills.
type delta struct {
	text     string
	output   int64 // tokens so far
	reported *limits.GPT4Usage
}

// provider streams the reply to a prompt of so many tokens. It ends early with ctx.
type provider func(ctx context.Context, prompt int64) iter.Seq[delta]

// gateway answers requests with the reply of a provider.
type gateway struct {
	gpt4   limits.GPT4Acquirer
	stream provider
}

// step is the tokens of output that are reserved at a time.
const step = 2_000

// complete writes the reply to a prompt of so many tokens. If the acquire fails, it writes nothing and
// returns that error. If the budget is exhausted while it writes, the reply ends there.
func (g gateway) complete(ctx context.Context, key limits.Key, prompt int64, w io.Writer) error {
	lease, err := g.gpt4.Acquire(ctx, key, limits.GPT4Usage{Input: prompt, Output: step, Call: 1}.Cost())
	if err != nil {
		return err
	}
	defer lease.Keep(ctx) // without a usage report, what is reserved stays charged
	reply, end := context.WithCancel(lease.Context(ctx))
	defer end()
	reserved := int64(step)
	for d := range g.stream(reply, prompt) {
		if d.reported != nil {
			return lease.Settle(ctx, d.reported.Cost())
		}
		if _, err := io.WriteString(w, d.text); err != nil {
			end() // the client hung up: the provider reports what it has used
		}
		if d.output > reserved*4/5 && reply.Err() == nil {
			if lease.More(ctx, limits.GPT4Usage{Output: step}.Cost()) != nil {
				end() // the budget is exhausted: the answer ends here
			}
			reserved += step
		}
	}
	return nil
}

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	org, id, known := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "), "/")
	if !known {
		http.Error(w, "no such key", http.StatusUnauthorized)
		return
	}
	key := limits.Key{ID: id, Org: limits.Org{ID: org}}
	err := g.complete(r.Context(), key, r.ContentLength/4+1, w) // take the tokenizer of your model
	status := httplimit.Status(limits.GPT4Month, http.StatusPaymentRequired)
	if err != nil && !httplimit.WriteError(w, r, err, status) {
		log.Print(err)
	}
}

// parrot is a provider that says the same to all prompts.
func parrot(ctx context.Context, prompt int64) iter.Seq[delta] {
	return func(yield func(delta) bool) {
		used := limits.GPT4Usage{Input: prompt, Call: 1}
		for range 5_000 {
			used.Output++
			if !yield(delta{text: "word ", output: used.Output}) {
				return
			}
			if ctx.Err() != nil {
				break
			}
		}
		yield(delta{reported: &used})
	}
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}
	lim, err := limits.New(dynamo.New(dynamodb.NewFromConfig(cfg), "rate_limits"))
	if err != nil {
		return err
	}
	if err := lim.Check(ctx); err != nil {
		return err
	}
	fmt.Println("listening on :8080")
	return http.ListenAndServe(":8080", gateway{lim.GPT4, parrot})
}
