package codec

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// Image is one side of a stream record: an item before or after a write. Package usage makes it of Lambda's
// and of DynamoDB Streams' own records.
type Image interface {
	// Attr returns an attribute's type as DynamoDB names it, such as N or S, and what a number or a string
	// holds; "" and "" where the item has no such attribute.
	Attr(name string) (kind, text string)
	// Len returns how many attributes the item has.
	Len() int
	// Each calls visit with each attribute's name, in no order, until that returns false.
	Each(visit func(name string) bool)
}

// Record is one record of a table's stream.
type Record struct {
	Old, New Image     // nil on INSERT, nil on REMOVE
	At       time.Time // when the service took the write, to the second or finer
	Sequence string    // its place in its shard: a number of up to 40 digits
}

// Delta is what one record says that one limit consumed: negative when more was given back than taken.
type Delta struct {
	Entity, Resource, Limit string
	Millitokens             int64
	At                      time.Time
	Ends                    int64 // of the window that was open after the write, ms; 0 for a limit that refills
}

// Counter names the attributes by which a bucket counts what was consumed of a limit.
type Counter struct {
	Limit    string
	Consumed string // b_<limit>_tc: all that was ever consumed
	Carried  string // m_<limit>: what of that was history when the bucket was made; most buckets have none
	Ends     string // b_<limit>_we: the end of the open window; "" for a limit that refills
}

// Bucket returns the resource whose bucket rec is about, "" where it is about another item, or about one that
// was deleted: what expires consumes nothing.
func (rec Record) Bucket() (resource string) {
	if rec.New == nil {
		return ""
	}
	kind, sk := rec.New.Attr(item.SK)
	resource, ok := strings.CutPrefix(sk, item.BucketPrefix)
	if kind != "S" || !ok || strings.Contains(resource, "#") {
		return ""
	}
	return resource
}

// Namespace returns the namespace of the item that rec is about, "" for the default one. A reader of a table
// that several owners share leaves out the records of other namespaces: entities may have the same ids there.
func (rec Record) Namespace() string {
	image := rec.New
	if image == nil {
		image = rec.Old
	}
	if image == nil {
		return ""
	}
	_, hash := image.Attr(item.PK)
	n, _ := item.SplitHash(hash)
	return string(n)
}

// Deltas returns the consumption in rec, a bucket's record: of counters' limits in their order, then of other
// limits, by name. It includes the latter so that an older reader drops no consumption. A new bucket counts
// from what it took over of its history, or from nothing. A limit that the write has dropped consumed
// nothing. A malformed attribute is an error that names item and attribute. Generated code calls it.
func (rec Record) Deltas(counters ...Counter) ([]Delta, error) {
	kind, entity := rec.New.Attr("entity_id")
	if kind != "S" {
		return nil, rec.malformed("entity_id", found(kind, ""), "a string")
	}
	resource := rec.Bucket()
	var out []Delta
	known := len(item.BucketAttributes)
	for i, c := range counters {
		d, has, err := rec.consumed(c)
		if err != nil {
			return nil, err
		}
		known += has
		if d.Millitokens == 0 {
			continue
		}
		if out == nil {
			out = make([]Delta, 0, len(counters)-i)
		}
		d.Entity, d.Resource = entity, resource
		out = append(out, d)
	}
	if kind, _ := rec.New.Attr(item.PlanOf); kind != "" {
		known++
	}
	if rec.New.Len() <= known {
		return out, nil
	}
	// a clone, so that counters need no allocation where there are no others
	others, err := rec.others(entity, resource, slices.Clone(counters))
	return append(out, others...), err
}

// others returns the deltas of limits that counters do not name, by name.
func (rec Record) others(entity, resource string, counters []Counter) (out []Delta, err error) {
	rec.New.Each(func(name string) bool {
		limit, is := item.LimitOf(name, "tc")
		if !is || slices.ContainsFunc(counters, func(c Counter) bool { return c.Consumed == name }) {
			return true
		}
		if !item.IsLimitName(limit) {
			err = rec.malformed(name, "of no limit", notOfALimit)
			return false
		}
		var d Delta
		if d, _, err = rec.consumed(Counter{Limit: limit, Consumed: name, Carried: item.CarriedAttribute(limit),
			Ends: item.LimitAttribute(limit, item.WindowField)}); d.Millitokens != 0 {
			d.Entity, d.Resource = entity, resource
			out = append(out, d)
		}
		return err == nil
	})
	slices.SortFunc(out, func(a, b Delta) int { return cmp.Compare(a.Limit, b.Limit) })
	return out, err
}

// consumed returns what rec's write consumed by c, without entity and resource, and how many attributes of
// c's limit the new image has.
func (rec Record) consumed(c Counter) (d Delta, attrs int, err error) {
	after, ok, err := rec.integer(rec.New, c.Consumed)
	if err != nil || !ok {
		return Delta{}, 0, err
	}
	carried, has, err := rec.integer(rec.New, c.Carried)
	if err != nil {
		return Delta{}, 0, err
	}
	if attrs = len(item.LimitFields); has {
		attrs++
	}
	d = Delta{Limit: c.Limit, At: rec.At}
	if c.Ends != "" {
		if d.Ends, has, err = rec.integer(rec.New, c.Ends); err != nil {
			return Delta{}, 0, err
		}
		if has {
			attrs++
		}
	}
	before := carried
	if rec.Old != nil {
		if before, _, err = rec.integer(rec.Old, c.Consumed); err != nil {
			return Delta{}, 0, err
		}
	}
	d.Millitokens = bucket.Sub(after, before)
	return d, attrs, nil
}

// integer reads an attribute; not ok is one that is not there.
func (rec Record) integer(img Image, attr string) (n int64, ok bool, err error) {
	kind, text := img.Attr(attr)
	if kind == "" {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(text, 10, 64); kind != "N" || err != nil {
		return 0, false, rec.malformed(attr, found(kind, text), "an integer of 64 bits")
	}
	return n, true, nil
}

// malformed is the error for an attribute that a bucket cannot have like this.
func (rec Record) malformed(attr, got, want string) error {
	_, pk := rec.New.Attr(item.PK)
	_, sk := rec.New.Attr(item.SK)
	wrong := &AttributeError{Attr: attr, Got: got, Want: want}
	return fmt.Errorf("sluice: stream record of %s: %w", item.Key{PK: pk, SK: sk}, wrong)
}

// found says what an attribute of this type and text holds instead of what is wanted.
func found(kind, text string) string {
	switch kind {
	case "":
		return "missing"
	case "N":
		return strconv.Quote(text)
	}
	return "of type " + kind
}

// BucketImage decodes a bucket in one side of a stream record, without a schema: its limits are Extra. The
// error is an *AttributeError.
func BucketImage(side Image) (entity string, img *bucket.Image, err error) {
	stored := make(Item, side.Len())
	side.Each(func(name string) bool {
		switch kind, text := side.Attr(name); kind {
		case "N":
			stored[name] = &types.AttributeValueMemberN{Value: text}
		case "S":
			stored[name] = &types.AttributeValueMemberS{Value: text}
		}
		return true
	})
	d := Decoder{Item: stored}
	if entity = d.Text("entity_id"); d.Err() != nil {
		return "", nil, d.Err()
	}
	img, err = DecodeBucket(stored)
	return entity, img, err
}

// Deleted returns the resource whose bucket rec says was deleted, "" where it is about something else.
func (rec Record) Deleted() (resource string) {
	if rec.New != nil || rec.Old == nil {
		return ""
	}
	return Record{New: rec.Old}.Bucket()
}
