package schema

import "slices"

const cascadeNone = "none"

func resourceKeys() []string {
	return []string{"doc", "go_name", "limits", "removed", "entities", "cascade"}
}

// resourceReader reads one resource.
type resourceReader struct {
	*reader
	res        *Resource
	what       string // for messages: resource "gpt-4"
	kinds      []*Kind
	kindsKnown bool
	limits     []limit // of res.Limits, as written
}

// resources reads the schema's resources.
func (r *reader) resources(e entry, kinds []*Kind, kindsKnown bool) []*Resource {
	entries, _ := r.mapping(e.value, "resources")
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), ruleEmpty, "resources is empty: name at least one, such as api: {limits: {rps: {capacity: 10, every: 1s}}}")
	}
	var resources []*Resource
	for _, e := range entries {
		rr := &resourceReader{
			reader:     r,
			res:        &Resource{Name: e.name, Cascade: cascadeNone, Pos: r.pos(e.key)},
			what:       "resource " + quote(e.name),
			kinds:      kinds,
			kindsKnown: kindsKnown,
		}
		resources = append(resources, rr.res)
		rr.read(e)
	}
	return resources
}

func (r *resourceReader) read(e entry) {
	nameOK := r.resourceName(r.res.Pos, r.what, e.name)
	f, ok := r.fields(e.value, r.what, resourceKeys(), func(e entry) bool {
		if e.name != "on_unavailable" {
			return false
		}
		r.add(r.pos(e.key), ruleNotYet, "on_unavailable is not supported by this version of sluice yet: leave it out")
		return true
	})
	if !ok {
		return
	}
	r.res.Doc = r.doc(f)
	r.res.GoName = r.goName(f, r.res.Pos, r.what, e.name, nameOK)
	if e, ok := r.needAt(f, r.res.Pos, "limits", "write at least one, such as limits: {rps: {capacity: 10, every: 1s}}"); ok {
		r.readLimits(e)
	}
	if e, ok := f.get("removed"); ok {
		r.readRemoved(e)
	}
	if e, ok := f.get("cascade"); ok {
		r.readCascade(e)
	}
	if e, ok := f.get("entities"); ok {
		r.readCharged(e)
	} else {
		r.chargeOnlyKind()
	}
	if _, ok := f.get("cascade"); !ok && r.kindsKnown {
		r.needCascade()
	}
}

// readLimits reads the numbers that every kind starts from.
func (r *resourceReader) readLimits(e entry) {
	entries, _ := r.mapping(e.value, "limits of "+r.what)
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), ruleEmpty, "limits of %s is empty: write at least one, such as rps: {capacity: 10, every: 1s}", r.what)
	}
	for _, e := range entries {
		l := &Limit{Name: e.name, Pos: r.pos(e.key)}
		what := "limit " + quote(e.name) + " of " + r.what
		nameOK := r.identifier(l.Pos, what, e.name)
		base := limit{what: what, pos: l.Pos}
		if f, ok := r.fields(e.value, what, limitKeys(), nil); ok {
			l.Doc = r.doc(f)
			l.GoName = r.goName(f, l.Pos, what, e.name, nameOK)
			base = r.baseLimit(f, base)
			r.checkLimit(base)
		}
		l.Numbers, l.PerCall = base.numbers(), base.perCall.n
		r.limits = append(r.limits, base)
		r.res.Limits = append(r.res.Limits, l)
	}
}

// readRemoved reads the names of limits that buckets may still hold.
func (r *resourceReader) readRemoved(e entry) {
	for _, it := range r.names(e.value, "removed of "+r.what) {
		r.identifier(r.pos(it.value), "removed limit "+quote(it.name)+" of "+r.what, it.name)
		if slices.Contains(r.limitNames(), it.name) {
			r.add(r.pos(it.value), ruleRemovedCurrent, "removed names %q, which is a limit of %s: take it out of one of the two", it.name, r.what)
		}
		r.res.Removed = append(r.res.Removed, it.name)
	}
}

// readCascade reads how a charge reaches the entity's parents.
func (r *resourceReader) readCascade(e entry) {
	switch text, ok := r.text(e.value, "cascade of "+r.what); {
	case !ok, text == cascadeNone:
	case text == "atomic", text == "compensated":
		r.add(r.pos(e.value), ruleNotYet, "cascade: %s is not supported by this version of sluice yet: write cascade: none", text)
	default:
		r.add(r.pos(e.value), ruleUnknownValue, "there is no cascade %q: %s", text, cure(text, []string{cascadeNone}))
	}
}

// needCascade asks for cascade where it decides something: a kind and an ancestor of it both have a bucket. Without the key
// such a chain will be charged as a whole one day, which must not change what a file means today.
func (r *resourceReader) needCascade() {
	charged := func(kind int) bool {
		return slices.ContainsFunc(r.res.Charged, func(c Charged) bool { return c.Kind == kind })
	}
	for _, c := range r.res.Charged {
		if c.Kind < 0 {
			continue
		}
		at := r.kinds[c.Kind].Parent
		for range r.kinds { // parents may form a cycle, which is reported elsewhere
			if at < 0 {
				break
			}
			if charged(at) && at != c.Kind {
				r.add(r.res.Pos, ruleMissingKey, "cascade is missing in %s, where both %s and its ancestor %s have a bucket: write cascade: none, "+
					"which charges only the entity that a call names", r.what, r.kinds[c.Kind].Name, r.kinds[at].Name)
				return
			}
			at = r.kinds[at].Parent
		}
	}
}

// readCharged reads which kinds have a bucket, and their numbers.
func (r *resourceReader) readCharged(e entry) {
	entries, _ := r.mapping(e.value, "entities of "+r.what)
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), ruleEmpty, "entities of %s is empty: name the kinds that have a bucket, such as {%s: {}}", r.what, r.exampleKind())
	}
	for _, e := range entries {
		kind := kindIndex(r.kinds, e.name)
		if kind < 0 && r.kindsKnown {
			r.add(r.pos(e.key), ruleUnknownKind, "%q in entities of %s is no kind of entities: %s", e.name, r.what, cure(e.name, kindNames(r.kinds)))
		}
		limits := r.restated(e)
		r.charge(kind, limits, r.pos(e.key))
	}
}

// restated returns the limits of one kind.
func (r *resourceReader) restated(e entry) []limit {
	limits := slices.Clone(r.limits)
	for i := range limits {
		limits[i] = limits[i].inherited()
	}
	entries, _ := r.mapping(e.value, "kind "+quote(e.name)+" of "+r.what)
	for _, le := range entries {
		what := "limit " + quote(le.name) + " restated for " + quote(e.name) + " in " + r.what
		f, _ := r.fields(le.value, what, restatedKeys(), func(e entry) bool {
			if e.name != "doc" && e.name != "go_name" {
				return false
			}
			r.add(r.pos(e.key), ruleRestatedKey, "%s belongs to the limit itself, for all kinds: move it to limits of %s", e.name, r.what)
			return true
		})
		if emptyMapping(le.value) {
			r.add(r.pos(le.key), ruleEmpty, "%s changes nothing: write what is different, or leave it out", what)
		}
		i := slices.Index(r.limitNames(), le.name)
		if i < 0 && len(r.limits) > 0 {
			r.add(r.pos(le.key), ruleUnknownLimit, "%q is no limit of %s, and only its limits can be restated: %s", le.name, r.what, cure(le.name, r.limitNames()))
		}
		own := limit{what: what, pos: r.pos(le.key)}
		if i >= 0 {
			limits[i].what, limits[i].pos = own.what, own.pos
			limits[i] = r.restatedLimit(f, limits[i])
			r.checkLimit(limits[i])
		} else {
			r.restatedLimit(f, own) // for the mistakes in it
		}
	}
	return limits
}

// chargeOnlyKind charges the only kind there is, or reports that entities is needed to tell which.
func (r *resourceReader) chargeOnlyKind() {
	switch {
	case len(r.kinds) == 1:
		r.charge(0, r.limits, r.res.Pos)
	case r.kindsKnown:
		r.add(r.res.Pos, ruleMissingKey, "entities is missing in %s: where there are several kinds, name those that have a bucket, such as entities: {%s: {}}",
			r.what, r.exampleKind())
	}
}

func (r *resourceReader) charge(kind int, limits []limit, pos Pos) {
	c := Charged{Kind: kind, Pos: pos}
	for _, l := range limits {
		c.Limits = append(c.Limits, l.numbers())
		c.PerCall = append(c.PerCall, l.perCall.n)
	}
	r.res.Charged = append(r.res.Charged, c)
}

func (r *resourceReader) limitNames() []string {
	names := make([]string, len(r.res.Limits))
	for i, l := range r.res.Limits {
		names[i] = l.Name
	}
	return names
}

// exampleKind returns a kind's name for a message.
func (r *resourceReader) exampleKind() string {
	if len(r.kinds) == 0 {
		return "user"
	}
	return r.kinds[len(r.kinds)-1].Name
}
