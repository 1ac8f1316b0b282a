// Package parked writes what an open lease took in few bytes, and reads it again.
package parked

import (
	"encoding/binary"
	"slices"

	"github.com/sluice-go/sluice/runtime/store"
)

// Append appends part to dst. It returns false, and dst, if a settle of part needs more than Read knows. That
// is the case for windows of an entity's own, several charges, holds, and limits that a bucket did not have.
func Append(dst []byte, part *store.Part) ([]byte, bool) {
	for i := range part.Buckets {
		b := &part.Buckets[i]
		if b.Windows != nil || b.Epochs != nil || len(b.Charges) > 1 || slices.Contains(b.Dropped, true) {
			return dst, false
		}
	}
	for _, c := range part.Cost {
		dst = binary.AppendVarint(dst, c)
	}
	for i := range part.Buckets {
		b := &part.Buckets[i]
		dst = binary.AppendUvarint(dst, uint64(b.Kind))
		dst = appendText(dst, b.Entity)
		dst = binary.AppendUvarint(dst, uint64(len(b.Ends)))
		for _, end := range b.Ends {
			dst = binary.AppendVarint(dst, end)
		}
		if dst = appendText(dst, b.Plan.Of); b.Plan.Of != "" {
			dst = appendText(appendText(dst, b.Plan.Name), b.Plan.From)
			dst = binary.AppendVarint(dst, b.Plan.Version)
		}
	}
	return dst, true
}

// appendText appends a text and its length to dst.
func appendText(dst []byte, text string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(text))), text...)
}

// Read returns the part that Append has written, of a definition with a spec. It reports false for anything
// else.
func Read(def store.Definition, spec *store.Spec, text []byte) (*store.Part, bool) {
	read := reader{rest: text}
	part := &store.Part{Def: def, Cost: make([]int64, len(spec.Limits))}
	for i := range part.Cost {
		part.Cost[i] = read.signed()
	}
	for len(read.rest) > 0 && !read.failed {
		b := store.Bucket{Kind: read.below(len(spec.Kinds)), Entity: string(read.bytes())}
		if ends := read.below(len(part.Cost) + 1); ends > 0 {
			b.Ends = make([]int64, ends)
		}
		for i := range b.Ends {
			b.Ends[i] = read.signed()
		}
		if b.Plan.Of = string(read.bytes()); b.Plan.Of != "" {
			b.Plan.Name, b.Plan.From = string(read.bytes()), string(read.bytes())
			b.Plan.Version = read.signed()
		}
		read.failed = read.failed || b.Ends != nil && len(b.Ends) != len(part.Cost)
		part.Buckets = append(part.Buckets, b)
	}
	part.NoteCharges()
	return part, !read.failed && len(part.Buckets) > 0
}

// reader reads what Append has written.
type reader struct {
	rest   []byte
	failed bool
}

// skip goes on behind n bytes; an n below 1 is none.
func (r *reader) skip(n int) {
	if n < 1 {
		r.failed, r.rest = true, nil
		return
	}
	r.rest = r.rest[n:]
}

// signed reads a number.
func (r *reader) signed() int64 {
	v, n := binary.Varint(r.rest)
	r.skip(n)
	return v
}

// below reads a number from 0 to most-1.
func (r *reader) below(most int) int {
	v, n := binary.Uvarint(r.rest)
	r.skip(n)
	if v >= uint64(most) {
		r.failed = true
		return 0
	}
	return int(v)
}

// bytes reads a text.
func (r *reader) bytes() []byte {
	n := r.below(len(r.rest) + 1)
	if n > len(r.rest) {
		r.failed = true
		return nil
	}
	text := r.rest[:n]
	r.rest = r.rest[n:]
	return text
}
