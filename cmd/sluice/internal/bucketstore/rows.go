package bucketstore

import (
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"

	"github.com/sluice-go/sluice/runtime/store"
)

// becomesBucket says what makes a bucket of per-limit items.
const BecomesBucket = "in per-limit items, which become a bucket by its next acquire or by `sluice migrate`"

// notStored says what it means that there is no bucket.
func NotStored(entity, resource string) string {
	return fmt.Sprintf("%s on %s: nothing is stored under this name: never used, expired, misspelt, "+
		"or the arguments are the wrong way round; an unused bucket is full", entity, resource)
}

// balances returns the rows of b's limits.
func Balances(b Bucket) [][]string {
	rows := [][]string{{"LIMIT", "AVAILABLE", "CAPACITY", "BURST", "REFILL", "FULL IN"}}
	for _, l := range b.Limits {
		row := append([]string{l.Name, format.Tokens(l.Available)}, format.Limit(l.Limit)...)
		rows = append(rows, append(row, format.FullIn(l.FullIn)))
	}
	return rows
}

// takenUp says when a change reaches those who remember what was there.
func TakenUp() string {
	return fmt.Sprintf("running processes take it up within their cache TTL, %s unless set otherwise", format.Span(store.DefaultCacheTTL))
}
