package wire

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws/ratelimit"
)

// Budget keeps retries from multiplying the load of an outage: each one after a failure takes retryCost, each call
// that DynamoDB carries out, or refuses by its condition, gives one back. When it is spent, at most one call in five is a
// retry. Lost races do not count: they are answers.
type Budget struct{ tokens *ratelimit.TokenRateLimit }

const (
	BudgetTokens = 500 // a hundred retries at once
	RetryCost    = 5
)

func NewBudget(tokens uint) *Budget {
	return &Budget{ratelimit.NewTokenRateLimit(tokens)}
}

// Take reports whether there may be another retry.
func (b *Budget) Take(ctx context.Context) bool {
	_, err := b.tokens.GetToken(ctx, RetryCost)
	return err == nil
}

// Answered gives back for a call that ended with o, if that is an answer.
func (b *Budget) Answered(o Outcome) {
	if o == Applied || o == Refused {
		_ = b.tokens.AddTokens(1) // never fails
	}
}
