package bucketstore

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

// BecomesBucket describes an entity whose per-limit items no bucket has replaced.
const BecomesBucket = "in per-limit items, which its next acquire or `sluice migrate` converts into a bucket"

// NotStored says what it means that there is no bucket.
func NotStored(entity, resource string) string {
	return fmt.Sprintf("%s on %s: no bucket is stored: it was never used, it has expired, or a name is wrong; "+
		"an unused bucket is full", term.Quote(entity), resource)
}

// Balances returns the rows of a table of b's limits.
func Balances(b Bucket) [][]string {
	rows := [][]string{{"LIMIT", "AVAILABLE", "CAPACITY", "BURST", "REFILL", "FULL IN"}}
	for _, l := range b.Limits {
		row := append([]string{l.Name, format.Tokens(l.Available)}, format.Limit(l.Limit)...)
		full := format.FullIn(l.FullIn)
		if !l.Resets.IsZero() {
			full = format.Resets(l.Resets, l.ResetsIn)
		}
		rows = append(rows, append(row, full))
	}
	return rows
}

// LimitJSON is the parameters of a limit in JSON.
type LimitJSON struct {
	Capacity int64 `json:"capacity_milli"`
	Burst    int64 `json:"burst_milli"`
	Refill   int64 `json:"refill_milli"`
	Period   int64 `json:"period_ms"`
}

// BalanceJSON is a limit of a bucket in JSON.
type BalanceJSON struct {
	Limit     string `json:"limit"`
	Available int64  `json:"available_milli"`
	LimitJSON
	FullIn int64 `json:"full_in_ms"`
	// Resets is the end of the open window. It is left out if none is open, or if the limit refills.
	Resets time.Time `json:"resets,omitzero"`
}

// BucketJSON is a bucket in JSON.
type BucketJSON struct {
	Entity   string        `json:"entity"`
	Resource string        `json:"resource"`
	Root     string        `json:"root,omitempty"` // in Redis: the last entity of its chain
	PerLimit bool          `json:"per_limit"`      // still in per-limit items
	Limits   []BalanceJSON `json:"limits"`
}

// JSONOf returns what JSON has of b.
func JSONOf(b Bucket) BucketJSON {
	out := BucketJSON{b.Entity, b.Resource, b.Root, b.Pending, []BalanceJSON{}}
	for _, l := range b.Limits {
		out.Limits = append(out.Limits,
			BalanceJSON{l.Name, l.Available, LimitJSON(l.Limit), l.FullIn.Milliseconds(), l.Resets.UTC()})
	}
	return out
}

// TakenUp says when running processes use a changed override or parent: they cache both.
func TakenUp() string {
	return fmt.Sprintf("running processes use it once their caches expire, after %s by default",
		format.Span(store.DefaultCacheTTL))
}
