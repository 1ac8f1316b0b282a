package bucketstore

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// Calendars holds when the windows of an entity's limits on a resource end, by limit. It has nil for a limit
// that refills, or that the entity's kind does not have.
type Calendars struct {
	Of []*bucket.Calendar
	// From is the entity whose calendar decides: the entity itself or the nearest ancestor that has one. It is
	// empty if none has, or if no limit asks for one. Limits that ask for one then have their defaults.
	From string
}

// CalendarsOf returns the calendars of l, the scope of an entity. It follows the parents that are stored, as
// calls do that name only the entity.
func CalendarsOf(ctx context.Context, at Store, l schemafile.Scope) (Calendars, error) {
	own := l.Own()
	c := Calendars{Of: make([]*bucket.Calendar, len(l.Spec.Limits))}
	var since time.Time
	if own.OwnWindows() {
		var err error
		if since, c.From, err = billing(ctx, at.Members(), l); err != nil {
			return c, at.Explain(err)
		}
	}
	for i, calendar := range own.Windows {
		if !own.Has(i) || calendar == nil {
			continue
		}
		if c.Of[i] = calendar; !since.IsZero() {
			c.Of[i] = calendar.Of(since)
		}
	}
	return c, nil
}

// billing returns the start of billing that holds for l, and the entity that has it. It is zero if none is
// stored.
func billing(ctx context.Context, from store.MemberStore, l schemafile.Scope) (time.Time, string, error) {
	entity, kinds := l.At, l.Spec.Kinds
	for kind := l.Kind; ; kind = kinds[kind].Parent {
		m, _, err := from.Get(ctx, entity)
		if err != nil || !m.Since.IsZero() {
			return m.Since, entity, err
		}
		above := kinds[kind].Parent
		if above == store.NoParent {
			return time.Time{}, "", nil
		}
		if parent, err := store.KindOf(kinds, m.Parent); err != nil || parent != above {
			return time.Time{}, "", nil //nolint:nilerr // no parent, or a wrong one, has no calendar for it
		}
		entity = m.Parent
	}
}

// InZones has the limits of all, buckets of entity, show the ends of their windows in their own zones. They
// stay in UTC if the schema cannot be read or does not have them.
func (c OneBucket) InZones(ctx context.Context, at Store, entity, resource string, all []Bucket) error {
	s, err := c.Read()
	if err != nil { // a table has the limits too: the schema is optional
		return nil //nolint:nilerr // the same
	}
	l, err := s.Bucket(entity, resource)
	if err != nil || l.Own().Windows == nil {
		return nil //nolint:nilerr // peek says what is wrong with the names
	}
	calendars, err := CalendarsOf(ctx, at, l)
	if err != nil {
		return err
	}
	for i, name := range l.Spec.Limits {
		if calendars.Of[i] == nil || calendars.Of[i].Zone == nil {
			continue
		}
		for j := range all {
			if limit := all[j].At(name); limit != nil && !limit.Resets.IsZero() {
				limit.Resets = limit.Resets.In(calendars.Of[i].Zone)
			}
		}
	}
	return nil
}
