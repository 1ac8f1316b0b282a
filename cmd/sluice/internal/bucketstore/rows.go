package bucketstore

import (
	"fmt"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
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
		row := append([]string{l.Name, format.Number(l.Available, l.Unit)}, format.Limit(l.Limit, l.Unit)...)
		rows = append(rows, append(row, l.fullIn()))
	}
	return rows
}

// fullIn says when l is full, and what open leases hold of it until when.
func (l Limit) fullIn() string {
	if l.InFlight() {
		return l.Slots() + until(": ", l.Held, l.Unit, time.UTC)
	}
	full, zone := format.FullIn(l.FullIn), time.UTC
	if l.Prepaid() {
		full = "never"
	}
	if !l.Resets.IsZero() {
		full, zone = format.Resets(l.Resets, l.ResetsIn), l.Resets.Location()
	}
	return full + until("; reserved: ", l.Held, l.Unit, zone)
}

// until says what is held until when, after a text, in a zone. It returns an empty string if nothing is held.
func until(before string, all []Hold, unit string, zone *time.Location) string {
	if len(all) == 0 {
		return ""
	}
	parts := make([]string, len(all))
	for i, h := range all {
		parts[i] = format.Number(h.Tokens, unit) + " until " + h.Until.In(zone).Format("15:04")
	}
	return before + strings.Join(parts, ", ") + " " + zone.String()
}

// Slots says how many slots of an in-flight limit are taken.
func (l Limit) Slots() string {
	var taken int64
	for _, h := range l.Held {
		taken = bucket.Add(taken, h.Tokens)
	}
	return format.Tokens(taken) + " of " + format.Tokens(l.Capacity) + " in flight"
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
	FullIn int64      `json:"full_in_ms"`
	Held   []HoldJSON `json:"held,omitempty"` // by open leases
	Money  *MoneyJSON `json:"money,omitempty"`
	// Resets is the end of the open window. It is left out if none is open, or if the limit refills.
	Resets time.Time `json:"resets,omitzero"`
}

// MoneyJSON is the amounts of a limit of money. They are strings, since numbers of JSON are floats to many
// readers.
type MoneyJSON struct {
	Currency  string       `json:"currency"`
	Available money.Amount `json:"available"`
	Capacity  money.Amount `json:"capacity"`
}

// MoneyJSON returns what JSON has of l's amounts: nil for tokens.
func (l Limit) MoneyJSON() *MoneyJSON {
	if l.Unit == "" {
		return nil
	}
	return &MoneyJSON{l.Unit, money.Amount(l.Available), money.Amount(l.Capacity)}
}

// HoldJSON is what open leases hold of a limit until the same instant, unless their processes extend it.
type HoldJSON struct {
	Tokens int64     `json:"tokens_milli"`
	Until  time.Time `json:"until"`
}

// HeldJSON returns what JSON has of l's holds: nil if there are none.
func (l Limit) HeldJSON() (all []HoldJSON) {
	for _, h := range l.Held {
		all = append(all, HoldJSON(h))
	}
	return all
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
			BalanceJSON{l.Name, l.Available, LimitJSON(l.Limit), l.FullIn.Milliseconds(), l.HeldJSON(),
				l.MoneyJSON(), l.Resets.UTC()})
	}
	return out
}

// LeasesLost says what becomes of the calls that hold tokens of the named limits of b, once these are filled.
// It returns an empty string if nothing is held, or if b no longer has those limits.
func LeasesLost(b Bucket, filled []string) string {
	for _, name := range filled {
		if l := b.At(name); l != nil && len(l.Held) > 0 {
			return "open leases hold nothing any more: those from before are lost within two minutes, and their " +
				"calls may run beside new ones until then"
		}
	}
	return ""
}

// TakenUp says when running processes use a changed override or parent: they cache both.
func TakenUp() string {
	return fmt.Sprintf("running processes use it once their caches expire, after %s by default",
		format.Span(store.DefaultCacheTTL))
}
