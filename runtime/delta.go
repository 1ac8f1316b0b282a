package runtime

import (
	"fmt"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
)

// Image is one side of a stream record. Adapters give it to Lambda's, DynamoDB Streams' and tests' images.
type Image interface {
	Number(attr string) (string, bool)
	Text(attr string) (string, bool)
}

// Record is one record of a table's stream.
type Record struct {
	Old, New Image // nil on INSERT, nil on REMOVE
	At       time.Time
}

// Delta is what one record says that one limit consumed: negative when more was given back than taken.
type Delta struct {
	Entity, Resource, Limit string
	Millitokens             int64
	At                      time.Time
}

// AppendDelta appends what rec says limit consumed by its attribute (b_<limit>_tc), if anything. A new bucket counts from
// what it took over of its history (m_<limit>), or from nothing. An attribute that is no integer is an error that names it.
// Generated code calls it.
func AppendDelta(dst []Delta, rec Record, entity, resource, limit, attr string) ([]Delta, error) {
	after, ok, err := integer(rec.New, attr)
	if err != nil || !ok {
		return dst, err
	}
	before, _, err := integer(rec.Old, attr)
	if rec.Old == nil {
		before, _, err = integer(rec.New, "m_"+limit)
	}
	if err != nil || after == before {
		return dst, err
	}
	return append(dst, Delta{Entity: entity, Resource: resource, Limit: limit, Millitokens: bucket.Sub(after, before), At: rec.At}), nil
}

func integer(img Image, attr string) (n int64, ok bool, err error) {
	if img == nil {
		return 0, false, nil
	}
	text, ok := img.Number(attr)
	if !ok {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(text, 10, 64); err != nil {
		return 0, false, fmt.Errorf("sluice: stream record: attribute %s: %q, want an integer of 64 bits", attr, text)
	}
	return n, true, nil
}
