package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"time"
)

// answer is what the model said and how many tokens prompt and answer took; 0 where it was not reached.
type answer struct {
	text     string
	used     int64
	degraded bool // no bucket in the table was charged
}

// most is how long an answer may become, in tokens.
const most = 300

// estimate is how many tokens a call may take: four characters are about one token, and the answer may be as long as it
// is allowed to be.
func estimate(prompt string) int64 { return int64(len(prompt))/4 + most }

var (
	errModel  = errors.New("model failed")
	errBroken = fmt.Errorf("%w half way", errModel)
)

// llm returns a model that takes its time, sometimes fails and sometimes breaks off. What it does depends on seed and
// prompt alone.
func llm(seed uint64) func(ctx context.Context, prompt string) (answer, error) {
	return func(ctx context.Context, prompt string) (answer, error) {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(prompt)) // never fails
		random := rand.New(rand.NewPCG(seed, hash.Sum64()))
		select {
		case <-time.After(time.Duration(50+random.IntN(450)) * time.Millisecond):
		case <-ctx.Done():
			return answer{}, fmt.Errorf("%w: %w", errModel, ctx.Err())
		}
		// The estimate's four characters per token are rough: it may turn out too low.
		used := int64(float64(len(prompt))/4*(0.8+0.6*random.Float64())) + 1
		switch dice := random.Float64(); {
		case dice < 0.06:
			return answer{}, errModel
		case dice < 0.09:
			return answer{used: used}, errBroken
		}
		used += random.Int64N(most)
		return answer{text: fmt.Sprintf("an answer of %d tokens in all", used), used: used}, nil
	}
}
