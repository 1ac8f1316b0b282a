package table

import (
	"cmp"
	"hash/fnv"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Key is a primary key, or an index's: comparable, so that it serves as a map's key. Its texts are ordered,
// byte by byte, as the values are: the smallest text after s is s+"\x00", so every range of keys is a
// half-open one.
type Key struct {
	spread     uint64 // of hash
	hash, sort string
}

// keyOf returns the item's key under that schema; ok is false if an attribute is missing or has another type.
func (s *KeySchema) keyOf(item value.Map) (key Key, ok bool) {
	hash, ok := s.Hash.ordered(item)
	if !ok {
		return Key{}, false
	}
	key = partition(hash)
	if s.Sort.Name != "" {
		key.sort, ok = s.Sort.ordered(item)
	}
	return key, ok
}

// attributes returns the item's key attributes.
func (s *KeySchema) attributes(item value.Map) value.Map {
	key := value.Map{}
	s.copyTo(key, item)
	return key
}

// copyTo copies the item's key attributes to another item.
func (s *KeySchema) copyTo(other, item value.Map) {
	other[s.Hash.Name] = item[s.Hash.Name]
	if s.Sort.Name != "" {
		other[s.Sort.Name] = item[s.Sort.Name]
	}
}

func (a *Attribute) ordered(item value.Map) (text string, ok bool) {
	v, ok := item[a.Name]
	if !ok || v.Kind() != a.Kind {
		return "", false
	}
	return ordered(v), true
}

// partition returns the place before all keys with that hash text.
func partition(hash string) Key { return Key{spread: spread(hash), hash: hash} }

// spread places a partition key among the others. Scans go by it, as DynamoDB's go by a hash. A segment of a
// parallel scan and a shard of the stream are ranges of it. Each has about the same number of keys, and the
// same ones in every run.
func spread(hash string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(hash)) // it never fails
	x := h.Sum64()
	// FNV leaves the high bits of short keys nearly alike, and ranges go by the high bits: murmur3's last step
	// mixes them.
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}

// compare orders keys by partition, then sort key.
func (k *Key) compare(other *Key) int {
	if k.spread != other.spread {
		return cmp.Compare(k.spread, other.spread)
	}
	if k.hash != other.hash {
		return strings.Compare(k.hash, other.hash)
	}
	return strings.Compare(k.sort, other.sort)
}

// ordered returns a text for a string, number or binary that is ordered as the values of its type are.
func ordered(v value.Value) string {
	switch v := v.(type) {
	case value.String:
		return string(v)
	case value.Binary:
		return string(v)
	case value.Number:
		return orderedNumber(v.String())
	default:
		return "" // no key
	}
}

// orderedNumber returns a decimal, as Number's String writes it, as its sign, magnitude and digits: bytes
// that are ordered as numbers are.
func orderedNumber(text string) string {
	text, negative := strings.CutPrefix(text, "-")
	whole, fraction, _ := strings.Cut(text, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	zeros := len(whole+fraction) - len(digits)
	digits = strings.TrimRight(digits, "0")
	if digits == "" {
		return "\x80"
	}
	// The number is 0.digits times ten to the power of -129 to 126: one byte.
	magnitude := byte(len(whole) - zeros + 129)
	if !negative {
		return string(append([]byte{0x81, magnitude}, digits...))
	}
	// The larger the magnitude, the smaller the number; and -12 is before -1, so what ends is after what goes
	// on.
	b := []byte{0x7f, ^magnitude}
	for _, digit := range []byte(digits) {
		b = append(b, '0'+'9'-digit)
	}
	return string(append(b, '~'))
}
