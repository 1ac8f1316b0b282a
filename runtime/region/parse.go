package region

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// parseQuickly is parse for an object as publish writes it. It is ten times as fast, and reports false if the
// object has another form. before is the region's snapshot of the cycle before, or nil: names and accounts
// that are as they were then are shared with it, so nobody changes them.
func parseQuickly(object []byte, before *Snapshot) (*Snapshot, bool) {
	const begin = `,"entries":[`
	head, entries, found := bytes.Cut(object, []byte(begin))
	if !found {
		return nil, false
	}
	head = append(bytes.Clone(head), '}')
	s := new(Snapshot)
	d := json.NewDecoder(bytes.NewReader(head))
	d.DisallowUnknownFields()
	if d.Decode(s) != nil || d.InputOffset() != int64(len(head)) || s.Version != Version {
		return nil, false
	}
	p := snapshotParser{rest: entries, slab: []Holding{}}
	if before != nil {
		p.before = before.Entries
		s.Entries = make([]Entry, 0, len(p.before)+len(p.before)/16)
	}
	for more := !p.has("]"); more && !p.bad; more = p.next() {
		s.Entries = append(s.Entries, p.entry())
	}
	p.want("}")
	return s, !p.bad && len(p.rest) == 0
}

// snapshotParser reads the entries of a snapshot. It is bad once something is not as expected.
type snapshotParser struct {
	rest   []byte
	bad    bool
	before []Entry   // of the snapshot before, from those on that may come
	slab   []Holding // memory for the next entries' limits
}

// has consumes text if it is next, and reports whether it was.
func (p *snapshotParser) has(text string) bool {
	if len(p.rest) < len(text) || string(p.rest[:len(text)]) != text {
		return false
	}
	p.rest = p.rest[len(text):]
	return true
}

// want consumes text.
func (p *snapshotParser) want(text string) { p.bad = !p.has(text) || p.bad }

// next consumes what follows an element of an array, and reports whether there is another one.
func (p *snapshotParser) next() bool {
	if p.has(",") {
		return true
	}
	p.want("]")
	return false
}

// integer consumes a number, after the text that introduces it.
func (p *snapshotParser) integer(introduction string) int64 {
	p.want(introduction)
	end := 0
	for end < len(p.rest) && (p.rest[end] == '-' || p.rest[end] >= '0' && p.rest[end] <= '9') {
		end++
	}
	digits := p.rest[:end]
	p.rest = p.rest[end:]
	if len(digits) > 0 && len(digits) < 19 && digits[0] != '-' && (digits[0] != '0' || end == 1) {
		n := int64(0)
		for _, digit := range digits {
			if digit == '-' {
				p.bad = true
			}
			n = 10*n + int64(digit-'0')
		}
		return n
	}
	n, err := strconv.ParseInt(string(digits), 10, 64)
	p.bad = p.bad || err != nil || bytes.HasPrefix(bytes.TrimPrefix(digits, []byte("-")), []byte("0"))
	return n
}

// text consumes a string, after the text that introduces it. It returns known if the string is that.
func (p *snapshotParser) text(introduction, known string) string {
	p.want(introduction)
	end := 1
	plain := len(p.rest) > 0 && p.rest[0] == '"'
	for plain && end < len(p.rest) && p.rest[end] != '"' {
		plain = p.rest[end] >= ' ' && p.rest[end] < 0x7f && p.rest[end] != '\\'
		end++
	}
	if plain && end < len(p.rest) {
		raw := p.rest[1:end]
		p.rest = p.rest[end+1:]
		if string(raw) == known {
			return known
		}
		return string(raw)
	}
	var s string
	d := json.NewDecoder(bytes.NewReader(p.rest[:min(len(p.rest), longestText)]))
	if d.Decode(&s) != nil {
		p.bad = true
		return ""
	}
	p.rest = p.rest[d.InputOffset():]
	return s
}

// longestText is the most that a string takes that is not plain, with its escapes.
const longestText = 16 << 10

// entry consumes an entry.
func (p *snapshotParser) entry() (e Entry) {
	old := &Entry{}
	if len(p.before) > 0 {
		old = &p.before[0]
	}
	entity := p.text(`{"entity":`, old.Entity)
	resource := p.text(`,"resource":`, old.Resource)
	if entity != old.Entity || resource != old.Resource {
		if old = p.find(key{resource, entity}); old.Entity == entity {
			entity, resource = old.Entity, old.Resource
		}
	}
	e.Entity, e.Resource = entity, resource
	e.Born, e.Used, e.Expires = p.integer(`,"born":`), p.integer(`,"used":`), p.integer(`,"expires":`)
	e.Gen = p.integer(`,"gen":`)
	e.Closing, e.Fresh = p.has(`,"closing":true`), p.has(`,"fresh":true`)
	e.Wrote = p.integer(`,"wrote":`)
	e.Raising = p.has(`,"raising":true`)
	p.want(`,"limits":[`)
	from := len(p.slab)
	for more := !p.has("]"); more && !p.bad; more = p.next() {
		if len(p.slab) == cap(p.slab) { // what this entry has so far moves along
			size := min(1024, max(8, 2*cap(p.slab)))
			p.slab = append(make([]Holding, 0, size+len(p.slab)-from), p.slab[from:]...)
			from = 0
		}
		var was *Holding
		if n := len(p.slab) - from; n < len(old.Limits) {
			was = &old.Limits[n]
		}
		p.slab = append(p.slab, p.holding(was))
	}
	p.want("}")
	e.Limits = p.slab[from:len(p.slab):len(p.slab)]
	if len(p.before) > 0 && old == &p.before[0] {
		p.before = p.before[1:]
	}
	return e
}

// find returns the entry of the snapshot before for k, an empty one if there is none. Entries are sorted.
func (p *snapshotParser) find(k key) *Entry {
	for len(p.before) > 0 {
		switch c := compareKeys(p.before[0].key(), k); {
		case c == 0:
			return &p.before[0]
		case c > 0:
			return &Entry{}
		}
		p.before = p.before[1:]
	}
	return &Entry{}
}

// compareKeys compares keys in the order of snapshots. Those of one entity stand together, since names that
// are near each other take the least when they are compressed.
func compareKeys(a, b key) int {
	if c := strings.Compare(a.entity, b.entity); c != 0 {
		return c
	}
	return strings.Compare(a.resource, b.resource)
}

// holding consumes a holding; old is that of the snapshot before, nil for none.
func (p *snapshotParser) holding(old *Holding) (h Holding) {
	if old == nil {
		old = &Holding{}
	}
	h.Limit = p.text(`{"limit":`, old.Limit)
	h.TC, h.TK, h.CP = p.integer(`,"tc":`), p.integer(`,"tk":`), p.integer(`,"cp":`)
	h.BX, h.RA, h.RP = p.integer(`,"bx":`), p.integer(`,"ra":`), p.integer(`,"rp":`)
	h.Rate, h.Whole, h.Held = p.integer(`,"rate":`), p.integer(`,"whole":`), p.integer(`,"held":`)
	h.Quota, h.Written = p.integer(`,"share":`), p.integer(`,"written":`)
	h.Given, h.Taken = p.account(`,"given":{`, old.Given), p.account(`,"taken":{`, old.Taken)
	p.want("}")
	return h
}

// account consumes an account if introduction is next. It returns old if it is the same.
func (p *snapshotParser) account(introduction string, old map[string]int64) map[string]int64 {
	if !p.has(introduction) {
		return nil
	}
	var regions [8]string
	var amounts [8]int64
	n, same := 0, true
	for more := true; more && !p.bad; more = p.has(",") {
		if n == len(regions) {
			p.bad = true
			return nil
		}
		regions[n] = p.text("", p.knownRegion(old))
		amounts[n] = p.integer(":")
		if was, ok := old[regions[n]]; !ok || was != amounts[n] {
			same = false
		}
		n++
	}
	if p.want("}"); same && n == len(old) {
		return old
	}
	account := make(map[string]int64, n)
	for i := range n {
		account[regions[i]] = amounts[i]
	}
	p.bad = p.bad || len(account) < n // a region twice
	return account
}

// knownRegion returns that of old's regions whose name is next, "" if none is.
func (p *snapshotParser) knownRegion(old map[string]int64) string {
	for region := range old {
		if n := len(region); len(p.rest) > n+1 && string(p.rest[1:n+1]) == region && p.rest[n+1] == '"' {
			return region
		}
	}
	return ""
}
