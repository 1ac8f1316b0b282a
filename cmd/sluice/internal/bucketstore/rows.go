package bucketstore

import (
	"fmt"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"

	"github.com/sluice-go/sluice/runtime/store"
)

// BecomesBucket describes an entity whose per-limit items no bucket has replaced.
const BecomesBucket = "in per-limit items, which its next acquire or `sluice migrate` converts into a bucket"

// NotStored says what it means that there is no bucket.
func NotStored(entity, resource string) string {
	return fmt.Sprintf("%s on %s: no bucket is stored: it was never used, it has expired, or a name is wrong; "+
		"an unused bucket is full", entity, resource)
}

// Balances returns the rows of a table of b's limits.
func Balances(b Bucket) [][]string {
	rows := [][]string{{"LIMIT", "AVAILABLE", "CAPACITY", "BURST", "REFILL", "FULL IN"}}
	for _, l := range b.Limits {
		row := append([]string{l.Name, format.Tokens(l.Available)}, format.Limit(l.Limit)...)
		rows = append(rows, append(row, format.FullIn(l.FullIn)))
	}
	return rows
}

// TakenUp says when running processes use a changed override or parent: they cache both.
func TakenUp() string {
	return fmt.Sprintf("running processes use it once their caches expire, after %s by default",
		format.Span(store.DefaultCacheTTL))
}
