// Package usage computes which entity consumed how much, and when, from the table's stream.
//
//	aggregator, err := usage.New(usage.Config{
//		Client: client, Table: table, Extract: limits.ExtractDeltas,
//		Poisoned: func(ctx context.Context, p usage.Poison) error {
//			slog.ErrorContext(ctx, "a stream record cannot be read", "record", p)
//			return nil // the records behind it count
//		},
//	})
//
//	question := usage.Question{Entity: entity, Resource: limits.GPT4, Span: usage.Day}
//	for day, err := range usage.Read(ctx, client, table, question) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(day.Limits, "millitokens")
//	}
//
// An [Aggregator] adds up the records that Lambda or package poll passes to it. [Read] returns the sums of
// hours and days, [ReadWindows] those of the windows of windowed limits:
//
//	a stream's record -> codec.Record -> ExtractDeltas of the generated package -> deltas -> windows
//
// The adapters [FromLambda] and [FromStreams] use only what the stream has: they read nothing from the table.
package usage

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Event names of streams.
const (
	inserted = "INSERT"
	modified = "MODIFY"
	removed  = "REMOVE"
)

// checkImages rejects a record without one of its images. Without the old image, all that a bucket ever
// consumed would be taken for the consumption of this write.
func checkImages(event string, rec codec.Record) error {
	var missing string
	switch {
	case event != inserted && event != modified && event != removed:
		return fmt.Errorf("sluice: stream record %s: event %q, want %s, %s or %s", rec.Sequence, event, inserted,
			modified, removed)
	case event != removed && rec.New == nil:
		missing = "new"
	case event != inserted && rec.Old == nil:
		missing = "old"
	default:
		return nil
	}
	return fmt.Errorf("sluice: stream record %s: %s without the %s image: give the table's stream "+
		"NEW_AND_OLD_IMAGES, as `sluice table check` says",
		rec.Sequence, event, missing)
}

// attributes are an item's, with values of any client.
type attributes[V any] map[string]V

// Len implements runtime.Image.
func (a attributes[V]) Len() int { return len(a) }

// Each implements runtime.Image.
func (a attributes[V]) Each(visit func(string) bool) {
	for name := range a {
		if !visit(name) {
			return
		}
	}
}
