package table

import (
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// expiry is the items that expire, ordered by when. Items whose attribute is missing or no number never do.
type expiry struct {
	attribute string // "": no item expires
	tree      tree
}

// ExpireBy sets the attribute that holds an item's expiry in Unix seconds; "" is none.
func (t *Table) ExpireBy(attribute string) {
	t.expiry = expiry{attribute: attribute, tree: newTree()}
	t.trees[0].Scan(func(e *entry) bool {
		t.expiry.replace(e.place, nil, e.item)
		return true
	})
}

func (x *expiry) replace(key Key, old, item value.Map) {
	if x.attribute != "" {
		x.tree.replace(x.entry(key, old), x.entry(key, item))
	}
}

func (x *expiry) entry(key Key, item value.Map) *entry {
	at, ok := (&Attribute{x.attribute, value.KindN}).ordered(item)
	if !ok {
		return nil
	}
	return &entry{position: position{place: Key{sort: at}, of: key}}
}

// Expired returns the keys of the items that expired before that instant, the earliest first. Those that did
// more than five years earlier are not among them: DynamoDB takes such a time for a mistake and does not
// delete the item.
func (t *Table) Expired(before time.Time) []Key {
	if t.expiry.attribute == "" {
		return nil
	}
	second := func(at time.Time) position { // the first one that is not before at
		return position{place: Key{sort: ordered(value.NumberOf(at.Add(time.Second - 1).Unix()))}}
	}
	to := second(before)
	if first, ok := t.expiry.tree.Min(); !ok || first.compare(&to) >= 0 {
		return nil // as for nearly all requests, each of which asks
	}
	from := second(before.AddDate(-5, 0, 0))
	var keys []Key
	t.expiry.tree.Ascend(&entry{position: from}, func(e *entry) bool {
		if e.compare(&to) >= 0 {
			return false
		}
		keys = append(keys, e.of)
		return true
	})
	return keys
}
