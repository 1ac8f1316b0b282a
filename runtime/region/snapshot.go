package region

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/store"
)

// Version is the version of Snapshot. A reader rejects any other.
const Version = 1

// Snapshot is what a region publishes as {region}/snapshot.json: what it knows of the others, and its books.
// Times are in ms, rates in millitokens per second, tc to ra in millitokens as in the table, quotas in whole
// tokens.
type Snapshot struct {
	Version     int              `json:"version"`
	Region      string           `json:"region"`
	Epoch       int64            `json:"epoch"`    // what it held in an earlier epoch is void
	Sequence    int64            `json:"sequence"` // of the object, rising by 1
	GeneratedAt int64            `json:"generated_at"`
	Window      int64            `json:"window"`
	Peers       map[string]Known `json:"peers"`
	Entries     []Entry          `json:"entries"` // by entity and resource
}

// Known is what a region knows of another.
type Known struct {
	Epoch       int64 `json:"epoch"`
	Evicted     bool  `json:"gone,omitempty"` // that epoch has ended: the region was silent for too long
	Sequence    int64 `json:"sequence"`       // of the last object seen
	GeneratedAt int64 `json:"generated_at"`   // of that
	// when all live regions first said the same of it, if it is evicted or was never seen
	AgreedAt int64 `json:"agreed_at,omitempty"`
}

// Entry is what a region knows of one entity's bucket of a resource.
type Entry struct {
	Entity   string `json:"entity"`
	Resource string `json:"resource"`
	Born     int64  `json:"born"`    // when the bucket was first seen, again after a deletion
	Used     int64  `json:"used"`    // when it was last seen to have been charged
	Expires  int64  `json:"expires"` // its ttl, in seconds
	// generation of the books: quotas move only within one, and not in 0
	Gen     int64 `json:"gen"`
	Closing bool  `json:"closing,omitempty"` // the books are being closed, since they are not used
	// no region has lowered a quota in this generation: tokens that reach a region were never used in another
	Fresh bool  `json:"fresh,omitempty"`
	Wrote int64 `json:"wrote"` // when its quotas were last written
	// quotas are about to be raised, and may have been raised already
	Raising bool      `json:"raising,omitempty"`
	Limits  []Holding `json:"limits"`
}

// Holding is a region's part of one limit.
type Holding struct {
	Limit string `json:"limit"`

	TC int64 `json:"tc"`
	TK int64 `json:"tk"` // the balance at generated_at
	CP int64 `json:"cp"`
	BX int64 `json:"bx"`
	RA int64 `json:"ra"`
	RP int64 `json:"rp"`

	Rate  int64 `json:"rate"`  // consumed over the last window
	Whole int64 `json:"whole"` // of all regions together, as configured in this one
	Held  int64 `json:"held"`  // tokens that this region may use
	Quota int64 `json:"share"` // the most that its processes may use of Held now
	// the quota last written: below Quota as long as a process may not have seen it
	Written int64 `json:"written"`
	// to other regions, in both regions' current epochs and the entry's gen
	Given map[string]int64 `json:"given,omitempty"`
	Taken map[string]int64 `json:"taken,omitempty"` // from other regions, already in Held
}

// Decode decodes the snapshot of a region as read at now. It fails with what is wrong with it and what to do.
// A window that differs is wrong too, unless window is 0. So is a snapshot generated more than slack after
// now.
func Decode(object []byte, region string, window time.Duration, now time.Time,
	slack time.Duration) (*Snapshot, error) {
	return decode(object, region, window, now, slack, nil)
}

// decode is Decode; before is as parseQuickly has it.
func decode(object []byte, region string, window time.Duration, now time.Time, slack time.Duration,
	before *Snapshot) (*Snapshot, error) {
	s, quick := parseQuickly(object, before)
	var err error
	if !quick {
		s, err = parse(object, region)
	}
	if err != nil {
		return nil, fmt.Errorf("the snapshot of %s, %s, cannot be read: %w", region, objectName(region), err)
	}
	if wrong := s.wrong(region, window, now, slack); wrong != "" {
		return nil, fmt.Errorf("the snapshot of %s, %s, %s", region, objectName(region), wrong)
	}
	return s, nil
}

// parse decodes an object without checking what it says.
func parse(object []byte, region string) (*Snapshot, error) {
	s := new(Snapshot)
	d := json.NewDecoder(bytes.NewReader(object))
	d.DisallowUnknownFields()
	err := d.Decode(s)
	if err != nil || s.Version != Version { // the version may be the cause
		var version struct{ Version int }
		if json.Unmarshal(object, &version) == nil && version.Version != Version {
			return nil, fmt.Errorf("it has version %d, this binary reads %d; %s", version.Version, Version, sameSluice)
		}
	}
	switch _, end := d.Token(); {
	case err == nil && errors.Is(end, io.EOF):
		return s, nil
	case err == nil:
		return nil, errors.New("it is more than one JSON object; " + foreign(region))
	case errors.Is(err, io.EOF):
		return nil, errors.New("it is empty; " + foreign(region))
	case errors.Is(err, io.ErrUnexpectedEOF):
		return nil, errors.New("it is cut off; " + foreign(region))
	case strings.HasPrefix(err.Error(), "json: unknown field"): // the error has no type of its own
		return nil, fmt.Errorf("%w; %s", err, sameSluice)
	}
	return nil, fmt.Errorf("%w; %s", err, foreign(region))
}

// sameSluice is the advice for an object of another version of sluice.
const sameSluice = "run the same sluice in all regions"

// foreign returns the advice for an object that no sluice has written.
func foreign(region string) string {
	return "see to it that only the sync of " + region + " writes there: its next cycle puts a new one"
}

// wrong says what is wrong with s and what to do, or "" if nothing is.
func (s *Snapshot) wrong(region string, window time.Duration, now time.Time, slack time.Duration) string {
	switch {
	case s.Region != region:
		return fmt.Sprintf("is the snapshot of %q: an object was copied; %s", s.Region, foreign(region))
	case s.Epoch < 1 || s.Sequence < 1:
		return fmt.Sprintf("has epoch %d and sequence %d, want 1 or above; %s", s.Epoch, s.Sequence,
			foreign(region))
	case window > 0 && s.Window != window.Milliseconds():
		return fmt.Sprintf("has windows of %v, this region of %v; deploy the same limits.yaml",
			time.Duration(s.Window)*time.Millisecond, window)
	case s.GeneratedAt > now.Add(slack).UnixMilli():
		return fmt.Sprintf("was generated at %s, in the future; set that host's clock, or this one's, by NTP",
			time.UnixMilli(s.GeneratedAt).UTC().Format(time.RFC3339))
	}
	sorted := slices.IsSortedFunc(s.Entries, func(a, b Entry) int { return compareKeys(a.key(), b.key()) })
	seen := map[key]bool{} // only if they are not sorted, which other versions may publish
	for i := range s.Entries {
		e := &s.Entries[i]
		wrong := e.wrong()
		if sorted && i > 0 && s.Entries[i-1].key() == e.key() || seen[e.key()] {
			wrong = "more than one entry"
		}
		if wrong != "" {
			return fmt.Sprintf("has for %s of %s %s; %s", store.Quote(e.Resource), store.Quote(e.Entity), wrong,
				foreign(region))
		}
		if !sorted {
			seen[e.key()] = true
		}
	}
	return ""
}

func (e *Entry) wrong() string {
	for i := range e.Limits {
		h := &e.Limits[i]
		for j := range i {
			if e.Limits[j].Limit == h.Limit {
				return "more than one entry of limit " + store.Quote(h.Limit)
			}
		}
		outside := func(tokens int64) bool { return tokens < 0 || tokens > maxTokens }
		if slices.ContainsFunc([]int64{h.Whole, h.Held, h.Quota, h.Written}, outside) || h.Rate < 0 {
			return fmt.Sprintf("whole %d, held %d, quota %d, written %d, rate %d of limit %s: "+
				"want none below 0, and all but the rate at most %d",
				h.Whole, h.Held, h.Quota, h.Written, h.Rate, store.Quote(h.Limit), int64(maxTokens))
		}
		for _, moved := range []map[string]int64{h.Given, h.Taken} {
			for peer, n := range moved {
				if n < 0 || n > math.MaxInt64/4 {
					return fmt.Sprintf("%d moved with %s of limit %s: want 0 or above", n, store.Quote(peer),
						store.Quote(h.Limit))
				}
			}
		}
	}
	return ""
}

// maxTokens is the highest limit that a schema may have, in tokens.
const maxTokens = 1_000_000_000_000

// key identifies an entry.
type key struct{ resource, entity string }

func (e *Entry) key() key { return key{e.Resource, e.Entity} }

// holding returns the holding of a limit, nil if e has none.
func (e *Entry) holding(limit string) *Holding {
	for i := range e.Limits {
		if e.Limits[i].Limit == limit {
			return &e.Limits[i]
		}
	}
	return nil
}
