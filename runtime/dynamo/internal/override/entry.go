package override

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Attributes of an entry besides its version, op, numbers and prices. A tombstone has no name.
const (
	nameAttribute    = "name"
	aliasAttribute   = "alias"
	bucketsAttribute = "buckets"
)

// DecodeEntry decodes an item of a template's catalog, which may be empty. found is false if the name has no
// entry; e then has the version that a removed one has left. It skips limits, kinds and plans that spec does
// not have, which another binary wrote. The error is a *store.SetupError.
func DecodeEntry(spec *store.Spec, raw codec.Item) (e store.Entry, found bool, err error) {
	if e.Version, err = decodeVersion(raw); err == nil && raw[nameAttribute] != nil {
		found, err = true, decodeEntry(spec, raw, &e)
	}
	if err != nil {
		return store.Entry{}, false, &store.SetupError{
			What: fmt.Sprintf("an entry of the catalog of %s is malformed", cmp.Or(spec.Template, spec.Resource)),
			Do:   "delete the item " + item.NameOf(raw) + ", and run `sluice catalog apply`", Err: err,
		}
	}
	return e, found, nil
}

func decodeEntry(spec *store.Spec, raw codec.Item, e *store.Entry) error {
	d := codec.Decoder{Item: raw}
	text := func(attr string) string {
		if raw[attr] == nil {
			return ""
		}
		return d.Text(attr)
	}
	e.Revision = FormatRevision(e.Version)
	e.Name, e.Alias, e.Buckets = text(nameAttribute), text(aliasAttribute), text(bucketsAttribute)
	for _, at := range spec.EntryAt() {
		numbers := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
		for i, limit := range spec.Limits {
			var err error
			if numbers.Limits[i], err = decodeLimit(&d, spec, item.EntryAttributes(at, limit), i, false); err != nil {
				return fmt.Errorf("at %s: %w", at, err)
			}
		}
		if numbers.Overrides() {
			e.Numbers = append(e.Numbers, numbers)
		}
	}
	for i, usage := range spec.Usages {
		attr := item.PriceAttribute(usage)
		if raw[attr] == nil {
			continue
		}
		if e.Prices == nil {
			e.Prices = slices.Repeat([]int64{-1}, len(spec.Usages))
		}
		e.Prices[i] = d.Int(attr)
	}
	return d.Err()
}

// EncodeEntry returns the attributes of e besides its key, version and op.
func EncodeEntry(spec *store.Spec, e *store.Entry) codec.Item {
	raw := codec.Item{nameAttribute: codec.S(e.Name)}
	if e.Alias != "" {
		raw[aliasAttribute] = codec.S(e.Alias)
	}
	if e.Buckets != "" {
		raw[bucketsAttribute] = codec.S(e.Buckets)
	}
	for _, numbers := range e.Numbers {
		for i, l := range numbers.Limits {
			if l == nil {
				continue
			}
			for j, attr := range item.EntryAttributes(numbers.At, spec.Limits[i]) {
				raw[attr] = codec.N([...]int64{l.Capacity, l.Burst, l.Refill, l.Period}[j])
			}
		}
	}
	for i, price := range e.Prices {
		if price >= 0 {
			raw[item.PriceAttribute(spec.Usages[i])] = codec.N(price)
		}
	}
	return raw
}

// KeepOthers adds to, the attributes of e, what is stored of limits, kinds, plans and usages that spec does
// not have: another binary has them, which wrote that. An alias has none.
func KeepOthers(to codec.Item, spec *store.Spec, e *store.Entry, stored codec.Item) {
	if e.Alias != "" {
		return
	}
	own := map[string]bool{}
	for _, at := range spec.EntryAt() {
		for _, limit := range spec.Limits {
			for _, attr := range item.EntryAttributes(at, limit) {
				own[attr] = true
			}
		}
	}
	for _, usage := range spec.Usages {
		own[item.PriceAttribute(usage)] = true
	}
	for attr, value := range stored {
		if item.IsOfEntry(attr) && !own[attr] {
			to[attr] = value
		}
	}
}

// EntryFields returns what an item of a catalog has, as records of changes have it: nothing of a tombstone.
// Fields of other binaries are among it.
func EntryFields(raw codec.Item) map[string]string {
	fields, d := FieldsOf(raw, item.LimitsPrefix("")), codec.Decoder{Item: raw}
	for field, attr := range map[string]string{"alias": aliasAttribute, "buckets": bucketsAttribute} {
		if raw[attr] != nil {
			fields[field] = d.Text(attr)
		}
	}
	for attr := range raw {
		if usage, ok := strings.CutPrefix(attr, item.PriceAttribute("")); ok {
			fields["price "+usage] = strconv.FormatInt(d.Int(attr), 10)
		}
	}
	return fields
}
