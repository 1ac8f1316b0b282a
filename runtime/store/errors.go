package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
)

// DeniedError says that tokens are missing now, and will be there after RetryAfter if nobody else takes them.
// Several callers may get the same one: do not change it.
type DeniedError struct {
	Resource  string
	Template  string // of which Resource is a name; "" for another resource
	Entity    string // whose bucket refused, as stored: user-123
	Limit     string // the limit that refuses longest
	Unit      string // of both numbers: a currency, with which they are money.Amounts, or "" for whole tokens
	Requested int64
	Available int64 // rounded down, 0 in debt
	// RetryAfter is the longest of all refusals, rounded up to a millisecond and never early. It is UntilGrant,
	// the longest Duration, if a limit with window: never refuses.
	RetryAfter time.Duration
	// Resets is the end of the window of Limit. It is zero if Limit refills, or if its window never ends.
	Resets   time.Time
	Refusals []Refusal // every limit that refused: by claim, nearest bucket first, schema order
	// Unsynced says that a refusal is due to a region's floor, since regional sync has never run in the region.
	Unsynced bool

	deadline bool // a Wait gave up
}

// Refusal is one limit that refused; its fields are as in DeniedError.
type Refusal struct {
	Resource, Template   string
	Entity, Limit, Unit  string
	Requested, Available int64
	RetryAfter           time.Duration
	Resets               time.Time
}

// Error names resource, entity, limit, numbers and the time to wait.
func (e *DeniedError) Error() string {
	left, tokens := strconv.FormatInt(e.Available, 10), " tokens"
	if e.Unit != "" { // 0.25 of 0.5 USD
		left, tokens = money.Amount(e.Available).String(), ""
	}
	retry := fmt.Sprintf("retry after %v", e.RetryAfter)
	if e.RetryAfter == UntilGrant {
		retry = "until a Grant adds to it"
	}
	s := fmt.Sprintf("sluice: %s denied for %s: %s has %s of %s%s, %s",
		e.Resource, Quote(e.Entity), e.Limit, left, Text(e.Unit, e.Requested), tokens, retry)
	if e.Unsynced {
		s += ", by the floor of a region in which regional sync has never run"
	}
	if e.deadline {
		s += ", beyond the deadline"
	}
	return s
}

// By reports whether limit is one of those that denied the call, in whichever bucket of its chain. A limit of
// a template is that of each of its names. It is false for nil.
func (e *DeniedError) By(limit LimitName) bool {
	if limit == nil {
		return false
	}
	resource, name := limit.Resource(), limit.String()
	is := func(r Refusal) bool {
		return resource != "" && (r.Resource == resource || r.Template == resource) && r.Limit == name
	}
	return is(Refusal{Resource: e.Resource, Template: e.Template, Limit: e.Limit}) ||
		slices.ContainsFunc(e.Refusals, is)
}

// Unwrap returns context.DeadlineExceeded if a Wait gave up because RetryAfter is past its deadline, else
// nil.
func (e *DeniedError) Unwrap() error {
	if e.deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// PastDeadline returns a copy of e for a Wait that gave up because e's RetryAfter is past its deadline.
func PastDeadline(e *DeniedError) *DeniedError {
	own := *e // others may have been denied with the same e
	own.deadline = true
	return &own
}

// CostTooLargeError says that the call can never be served as it is: waiting does not help.
type CostTooLargeError struct {
	Resource, Entity, Limit string
	Unit                    string // of both numbers, as in DeniedError
	Requested, Burst        int64
}

// Error names resource, entity, limit, both numbers and the cure.
func (e *CostTooLargeError) Error() string {
	if e.Unit != "" {
		return fmt.Sprintf("sluice: %s for %s: cost of %s exceeds %s, the capacity of %s, and can never be "+
			"served: split the call, or raise the capacity",
			e.Resource, Quote(e.Entity), Text(e.Unit, e.Requested), Text(e.Unit, e.Burst), e.Limit)
	}
	return fmt.Sprintf("sluice: %s for %s: cost of %d %s exceeds the %d of a full bucket and can never be "+
		"served: split the call, or raise the limit", e.Resource, Quote(e.Entity), e.Requested, e.Limit, e.Burst)
}

// Exceeds returns an error for the first limit that never holds its cost, as far as img says at now, in ms,
// or nil. At math.MaxInt64 all windows are over, and grants with them. Stores call it.
func Exceeds(spec *Spec, entity string, img *bucket.Image, cost []int64, now int64) error {
	for i, b := range img.Balances {
		if !img.Missing[i] && b.TooLarge(cost[i], now) {
			return &CostTooLargeError{
				Resource: spec.Resource, Entity: entity, Limit: spec.Limits[i],
				Unit: spec.Unit(i), Requested: spec.Whole(i, cost[i]), Burst: spec.Whole(i, b.Burst),
			}
		}
	}
	return nil
}

// InvalidError says that the caller's input is wrong. It may be a negative, empty or too large cost, an empty
// or too long id, or an id with '#', invalid UTF-8, a control character or a bidirectional control. It may
// also be an entity whose parent is to be looked up and is not stored. Nothing was charged or written.
// Resource is empty if the input belongs to none.
type InvalidError struct{ Resource, Field, Value, Reason string }

// Error names resource, if there is one, field, value and what is wrong with it.
func (e *InvalidError) Error() string {
	what := e.Field
	if e.Value != "" {
		what += fmt.Sprintf(" %q", shorten(e.Value))
	}
	if e.Resource != "" {
		what = e.Resource + ": " + what
	}
	return fmt.Sprintf("sluice: %s %s", what, e.Reason)
}

// UnknownPlanError says that an entity is on a plan that the schema of this program does not have, since a
// newer program has put it there. Its calls are served all the same: buckets keep their numbers, and a new
// one gets the most that any known plan gives.
type UnknownPlanError struct {
	Entity string // as stored: org-7
	Plan   string
}

// Error names the entity, the plan and what to do.
func (e *UnknownPlanError) Error() string {
	return fmt.Sprintf("sluice: %s is on plan %s, which limits.yaml of this program does not have: update the "+
		"program", Quote(e.Entity), Quote(e.Plan))
}

// UnknownNameError says that the catalog of a template does not have a name. Nothing was charged, and there
// is no bucket of it.
type UnknownNameError struct {
	Resource string // the template
	Name     string
	// Unread says that it was not looked up, since too many unknown names were asked for in this second.
	Unread bool
}

// Error names the template, the name and what to do.
func (e *UnknownNameError) Error() string {
	if e.Unread {
		return fmt.Sprintf("sluice: %s: the name %s was not looked up, as too many unknown names are asked "+
			"for", e.Resource, Quote(shorten(e.Name)))
	}
	return fmt.Sprintf("sluice: %s: the catalog does not have the name %s: add it to the catalog's file, and "+
		"run `sluice catalog apply`", e.Resource, Quote(shorten(e.Name)))
}

// ErrNotSent is in an *UnavailableError's chain if the call's time was up while it waited behind an earlier
// write to the same bucket, or for a turn of the Limiter. Nothing was charged.
var ErrNotSent = errors.New("time was up behind an earlier write to the bucket, or before a turn was free")

// UnavailableError says that the store did not answer in time or is down. An acquire fails with it if its
// policy is Deny. Whether the call was charged is unknown, unless it was not sent (ErrBreakerOpen,
// ErrNotSent). A charge is given back if nobody has written since.
type UnavailableError struct {
	Resource  string
	Attempts  int
	Throttled bool // the store answered, and refused for its throughput
	Err       error
}

// Error names resource and attempts, if known, and the cause.
func (e *UnavailableError) Error() string {
	s := "sluice: "
	if e.Resource != "" {
		s += e.Resource + ": "
	}
	s += "store unavailable"
	if e.Attempts > 0 {
		s += " after " + attempts(e.Attempts)
	}
	return fmt.Sprintf("%s: %v", s, e.Err)
}

// Unwrap returns the last attempt's error.
func (e *UnavailableError) Unwrap() error { return e.Err }

// Unsent returns err, the error of an attempt that was other calls' alone, for a call of which nothing was
// sent.
func Unsent(err error) error {
	u, ok := errors.AsType[*UnavailableError](err)
	if !ok {
		return err
	}
	return &UnavailableError{
		Resource: u.Resource, Throttled: u.Throttled, Err: fmt.Errorf("%w: %w", ErrNotSent, u.Err),
	}
}

// SetupError says that the installation has to be fixed: no table, no rights, a newer layout, a malformed
// item.
type SetupError struct {
	What, Do string
	Err      error // may be nil
}

// Error says what is wrong and what to do. The cause, which may be long, comes last.
func (e *SetupError) Error() string {
	s := "sluice: " + e.What
	if e.Do != "" {
		s += "; " + e.Do
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *SetupError) Unwrap() error { return e.Err }

// ContendedError says that no attempt of a call was applied: the write lost its races to other writes of the
// bucket, or met transactions on it. Either may be of the same process. It is neither a denial nor an outage:
// nothing was charged, and trying again is safe.
type ContendedError struct {
	Resource, Entity string
	// Attempts is the number of the call's attempts. It is 0 if its time was up behind an earlier call's.
	Attempts int
	// Conflicts is how many attempts met a transaction. It counts those of earlier calls in the same write, so
	// it may exceed Attempts.
	Conflicts int
}

// Error names resource, entity and attempts, and what the write lost to.
func (e *ContendedError) Error() string {
	when := "before its first attempt: an earlier call's write"
	if e.Attempts > 0 {
		when = fmt.Sprintf("after %s: the write", attempts(e.Attempts))
	}
	to := "other writes"
	switch {
	case e.Conflicts > 0 && e.Conflicts >= e.Attempts:
		to = "transactions on the bucket"
	case e.Conflicts > 0:
		to += " and to transactions on the bucket"
	}
	return fmt.Sprintf("sluice: %s for %s: contended %s lost to %s, nothing was charged: try again",
		e.Resource, Quote(e.Entity), when, to)
}

// ConflictError says that something was changed since it was read: an override or, if Resource is empty, what
// At names, such as "plan of org-7". Read it again.
type ConflictError struct{ Resource, At string }

// Error names the override and what to do.
func (e *ConflictError) Error() string {
	if e.Resource == "" {
		return fmt.Sprintf("sluice: the %s has been changed meanwhile: read it again", Quote(e.At))
	}
	return fmt.Sprintf("sluice: the override of %s at %s has been changed meanwhile: read it again",
		e.Resource, Quote(e.At))
}

func attempts(n int) string {
	if n == 1 {
		return "1 attempt"
	}
	return fmt.Sprint(n, " attempts")
}
