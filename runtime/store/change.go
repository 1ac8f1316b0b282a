package store

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"
)

// Change is the record of a change of an entity's plan, of an override, of the numbers of a plan, or of an
// entry of a catalog. A store writes it together with the change: both or neither. Quotas that regional sync
// stores have none.
type Change struct {
	Time time.Time `json:"-"`
	// At is an entity or a kind as stored, a kind on a plan (PlanAt), or the name of an entry.
	At string `json:"at"`
	// Resource is the one whose limits are overridden, or the template of an entry. It is empty for an entity's
	// plan.
	Resource string `json:"resource,omitempty"`
	By       string `json:"by,omitempty"` // as ChangedBy says, else as the store's client signs in
	Reason   string `json:"reason,omitempty"`
	// Before and After have what is stored by name: "plan", a limit, or for an entry "key.rpm", "alias",
	// "buckets" and "price input". A limit is its capacity, burst, refill and period, in millitokens and ms.
	Before map[string]string `json:"before,omitempty"`
	After  map[string]string `json:"after,omitempty"`
}

// Audited is what records of changes are listed of: one of its fields.
type Audited struct {
	Entity  string // as stored: its plan and its overrides
	Kind    string // its overrides
	Plans   string // the numbers of a resource's plans
	Catalog string // the entries of a template
}

// ChangesKept is how long the record of a change is kept.
const ChangesKept = 400 * 24 * time.Hour

// maxActor is the most bytes of an actor, and of a reason, that a record has. With an id of any length, the
// record of a plan is below 1 kB, which is one write unit.
const maxActor = 200

type actorKey struct{}

// actor is who changes something, and why.
type actor struct{ by, reason string }

// ChangedBy returns a context for calls that change a plan, an override or a catalog: their records name by
// and reason. An empty by leaves what the store finds itself. Of each the first 200 bytes are recorded.
func ChangedBy(ctx context.Context, by, reason string) context.Context {
	return context.WithValue(ctx, actorKey{}, actor{shortened(by), shortened(reason)})
}

// ActorOf returns what ChangedBy has put into ctx. Stores call it.
func ActorOf(ctx context.Context) (by, reason string) {
	a, _ := ctx.Value(actorKey{}).(actor)
	return a.by, a.reason
}

// shortened returns text as a record has it.
func shortened(text string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= maxActor {
		return text
	}
	end := maxActor
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

// PlanFields returns plan as records have it.
func PlanFields(plan string) map[string]string {
	if plan == "" {
		return nil
	}
	return map[string]string{"plan": plan}
}

// Fields returns the limits of s as records have them.
func (s Stored) Fields(spec *Spec) map[string]string {
	fields := map[string]string{}
	s.fields(spec, "", fields)
	return fields
}

func (s Stored) fields(spec *Spec, prefix string, into map[string]string) {
	for i, l := range s.Limits {
		if l != nil {
			into[prefix+spec.Limits[i]] = fmt.Sprintf("%d %d %d %d", l.Capacity, l.Burst, l.Refill, l.Period)
		}
	}
}

// Fields returns e as records have it: nothing for an entry that is not there.
func (e *Entry) Fields(spec *Spec) map[string]string {
	fields := map[string]string{}
	if e.Alias != "" {
		fields["alias"] = e.Alias
	}
	if e.Buckets != "" {
		fields["buckets"] = e.Buckets
	}
	for _, numbers := range e.Numbers {
		numbers.fields(spec, numbers.At+".", fields)
	}
	for i, price := range e.Prices {
		if price >= 0 {
			fields["price "+spec.Usages[i]] = fmt.Sprint(price)
		}
	}
	return fields
}
