package main

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"math/rand/v2"
	"strings"
	"time"
)

// model replies piece by piece, some tokens in each. An error ends the reply.
type model func(ctx context.Context, c *chat) iter.Seq2[string, error]

var (
	errModel  = errors.New("model failed")
	errBroken = fmt.Errorf("%w half way", errModel)
)

// llm returns a model that takes its time, sometimes fails and sometimes breaks off. Its replies depend on
// seed and prompt alone.
func llm(seed uint64) model {
	return func(ctx context.Context, c *chat) iter.Seq2[string, error] {
		hash := fnv.New64a()
		_, _ = hash.Write([]byte(c.prompt())) // never fails
		random := rand.New(rand.NewPCG(seed, hash.Sum64()))
		return func(yield func(string, error) bool) {
			if err := pause(ctx, time.Duration(50+random.IntN(150))*time.Millisecond); err != nil {
				yield("", err)
				return
			}
			left := 1 + random.Int64N(c.MaxTokens)
			end := error(nil)
			switch dice := random.Float64(); {
			case dice < 0.06:
				yield("", errModel)
				return
			case dice < 0.12:
				left, end = max(1, left/2), errBroken
			}
			for left > 0 {
				n := min(left, 1+random.Int64N(8))
				left -= n
				if !yield(strings.Repeat("word ", int(n)), nil) {
					return
				}
				if err := pause(ctx, time.Duration(2+random.IntN(15))*time.Millisecond); err != nil {
					yield("", err)
					return
				}
			}
			if end != nil {
				yield("", end)
			}
		}
	}
}

// pause waits, unless ctx ends before.
func pause(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errModel, ctx.Err())
	}
}
