package bucket_test

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// 100 tokens a minute are 1 2/3 millitokens a millisecond. Claimed one millisecond at a time, nothing is
// lost.
func ExampleRefill() {
	limit := bucket.Per(100, time.Minute)
	for now := int64(1); now <= 3; now++ {
		fmt.Println(now, bucket.Refill(limit, now-1, now))
	}
	fmt.Println("at once", bucket.Refill(limit, 0, 3))
	// Output:
	// 1 1
	// 2 2
	// 3 2
	// at once 5
}

// A bucket 2 tokens in debt serves a call of 3 when 5 tokens have come: exactly then, not a millisecond
// earlier.
func ExampleRetryAfter() {
	const rf, now = 1000, 1500
	balance := bucket.Balance{Limit: bucket.Per(60, time.Minute), Tokens: -2 * bucket.Milli}
	wait := bucket.RetryAfter(balance, rf, now, 3*bucket.Milli)
	fmt.Println(wait)
	then := now + wait.Milliseconds()
	fmt.Println(bucket.Available(balance, rf, then-1), bucket.Available(balance, rf, then))
	// Output:
	// 4.5s
	// 2999 3000
}
