package usage

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Span is the length of a window. Windows begin at whole hours and days in UTC. A LimitWindow is a window of
// a windowed limit, and as long as the schema says; ReadWindows yields these.
type Span string

// The spans.
const (
	Hour        Span = "hour"
	Day         Span = "day"
	LimitWindow Span = item.WindowSpan
)

// spans returns those of windows that all limits have.
func spans() []Span { return []Span{Hour, Day} }

// Length returns how long s is, an hour or a day.
func (s Span) Length() time.Duration {
	if s == Day {
		return 24 * time.Hour
	}
	return time.Hour
}

// layout returns the time layout of a window's start in its key. Keys sort by time.
func (s Span) layout() string {
	if s == Day {
		return "2006-01-02"
	}
	return "2006-01-02T15"
}

// Window identifies the consumption of one entity on one resource within a span.
type Window struct {
	Entity, Resource string
	Span             Span
	Start            time.Time // UTC
}

// WindowOf returns the window of a span that holds at.
func WindowOf(entity, resource string, span Span, at time.Time) Window {
	return Window{Entity: entity, Resource: resource, Span: span, Start: at.UTC().Truncate(span.Length())}
}

// String returns w as errors name it.
func (w Window) String() string {
	return fmt.Sprintf("%s on %s, %s of %s", store.Quote(w.Entity), store.Quote(w.Resource), w.Span,
		w.Start.Format(w.Span.layout()))
}

// key returns the primary key of w's item: ENTITY#user-1 / #USAGE#gpt-4#hour#2026-11-21T14.
func (w Window) key() codec.Item {
	return item.UsageKey(w.Entity, w.Resource, string(w.Span), w.Start.Format(w.Span.layout()))
}
