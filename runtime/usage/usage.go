// Package usage tells who spent what, when, from the table's stream.
//
//	a stream's record -> runtime.Record -> ExtractDeltas of the generated package -> deltas
//
// The adapters keep what the service said: nothing is read again.
package usage

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Names of what a write did, as streams have them.
const (
	inserted = "INSERT"
	modified = "MODIFY"
	removed  = "REMOVE"
)

// checkImages refuses a record that lacks an image: without the one before, all that a bucket ever consumed
// would be taken for what this write did.
func checkImages(event string, rec codec.Record) error {
	var lacks string
	switch {
	case event != inserted && event != modified && event != removed:
		return fmt.Errorf("sluice: stream record %s: event %q, want %s, %s or %s", rec.Sequence, event, inserted,
			modified, removed)
	case event != removed && rec.New == nil:
		lacks = "new"
	case event != inserted && rec.Old == nil:
		lacks = "old"
	default:
		return nil
	}
	return fmt.Errorf("sluice: stream record %s: %s without the %s image: give the table's stream "+
		"NEW_AND_OLD_IMAGES, as `sluice table check` says",
		rec.Sequence, event, lacks)
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
