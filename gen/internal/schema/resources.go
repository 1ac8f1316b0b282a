package schema

import (
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/goname"
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

func resourceKeys() []string {
	return []string{"doc", "go_name", "names", "limits", "removed", "usage", "entities", "plans", "global",
		"cascade", "on_unavailable", "settle", "prefetch", "shadow"}
}

// CascadeNone is the cascade that charges the entity's own bucket alone.
const CascadeNone = "none"

// SettleLazy is the settle that does not wait for its write.
const SettleLazy = "lazy"

// cascades, policies and settles are the values of cascade, on_unavailable and settle. The first is the
// default.
func cascades() []string { return []string{"atomic", "compensated", CascadeNone} }
func policies() []string { return []string{"allow", "deny", "local"} }
func settles() []string  { return []string{"now", SettleLazy} }

// resourceReader reads one resource.
type resourceReader struct {
	*reader
	res        *Resource
	what       string // for messages: resource "gpt-4"
	kinds      []*Kind
	kindsKnown bool

	limits      []limit   // of res.Limits, as written
	limitsKnown bool      // references to limits can be checked against them
	own         [][]limit // of res.Charged, as written

	chargedUnknown bool // references to res.Charged cannot be checked

	usageUnknown bool // references to usage cannot be checked
}

// resources reads the schema's resources.
func (r schemaReader) resources(e entry, kinds []*Kind, kindsKnown bool) []*Resource {
	entries, _ := r.mapping(e.value, "resources",
		"what is limited, such as {api: {limits: {rps: {capacity: 10, every: 1s}}}}")
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "resources is empty: name at least one, such as api: {limits: {rps: "+
			"{capacity: 10, every: 1s}}}")
	}
	var resources []*Resource
	for _, e := range entries {
		rr := &resourceReader{
			reader:     r.reader,
			res:        &Resource{Name: e.name, Pos: r.pos(e.key)},
			what:       "resource " + hint.Quote(e.name),
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
	f, ok := r.fields(e.value, r.what, "a mapping, such as {limits: {rps: {capacity: 10, every: 1s}}}",
		resourceKeys(), nil)
	if !ok {
		r.globalUnknown = true
		return
	}
	r.res.Doc = r.doc(f)
	r.res.GoName = r.goName(f, r.res.Pos, r.what, e.name, nameOK)
	if e, ok := r.needAt(f, r.res.Pos, "limits",
		"write at least one, such as limits: {rps: {capacity: 10, every: 1s}}"); ok {
		r.readLimits(e)
	}
	r.usageUnknown = f.merged || slices.Contains(f.meant, "usage")
	if e, ok := f.get("usage"); ok {
		moneyReader{r}.readUsage(e)
	}
	moneyReader{r}.checkMoney()
	if e, ok := f.get("removed"); ok {
		r.readRemoved(e)
	}
	if e, ok := f.get("entities"); ok {
		r.readCharged(e)
	} else {
		r.addOnlyKind()
	}
	r.readGlobal(f)
	r.res.PlansPos = r.res.Pos
	if e, ok := f.get("plans"); ok {
		planReader{r}.read(e)
	}
	needPolicy(r, f)
	r.res.Cascade, r.res.CascadePos = r.choice(f, "cascade", cascades())
	r.res.OnUnavailable, r.res.OnUnavailablePos = r.choice(f, "on_unavailable", policies())
	r.res.Settle, r.res.SettlePos = r.choice(f, "settle", settles())
	r.res.PrefetchPos = r.res.Pos
	if e, ok := f.get("prefetch"); ok {
		readPrefetch(r, e)
	}
	r.res.Shadow, r.res.ShadowPos, _ = r.flag(f, "shadow", r.what, r.res.Pos)
	readNames(r, f)
	r.inheritPerCall()
}

// readLimits reads the numbers that every kind starts from.
func (r *resourceReader) readLimits(e entry) {
	entries, _ := r.mapping(e.value, "limits of "+r.what, "a mapping, such as {rps: {capacity: 10, every: 1s}}")
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "limits of %s is empty: write at least one, such as rps: {capacity: 10, "+
			"every: 1s}", r.what)
	}
	r.limitsKnown = len(entries) > 0 && !merges(e.value)
	for _, e := range entries {
		l := &Limit{Name: e.name, Pos: r.pos(e.key)}
		what := "limit " + hint.Quote(e.name) + " of " + r.what
		nameOK := r.identifier(l.Pos, what, e.name)
		base := limit{what: what, pos: l.Pos}
		if f, ok := r.fields(e.value, what, "its numbers, such as "+exampleLimit(e.name)+": {capacity: 10, "+
			"every: 1s}", limitKeys(), nil); ok {
			l.Doc = r.doc(f)
			l.GoName = r.goName(f, l.Pos, what, e.name, nameOK)
			l.Refills, _, _ = r.flag(f, "refills", what, l.Pos)
			l.AllNames, base.allNamesPos, _ = r.flag(f, "all_names", what, l.Pos)
			base = r.baseLimit(f, base)
			r.checkLimit(base)
			if e, ok := f.get("kinds"); ok {
				base.kinds = r.limitKinds(e, what)
			}
		}
		l.Numbers, l.PerCall, l.Window = base.plain(), base.perCall.n, base.window
		l.InFlight, l.Release = base.inFlight, base.release
		if len(base.counts) > 0 {
			l.Counts = names(base.counts)
		}
		r.limits = append(r.limits, base)
		r.res.Limits = append(r.res.Limits, l)
	}
}

// needPolicy reports that on_unavailable is missing beside a limit in flight, or of money. Its default would
// admit any number of calls at the same time, and spend without a bound.
func needPolicy(r *resourceReader, f fields) {
	i := slices.IndexFunc(r.limits, func(l limit) bool { return l.inFlight || l.money })
	if i < 0 {
		return
	}
	key := "in_flight"
	if r.limits[i].money {
		key = "money"
	}
	r.needAt(f, r.res.Pos, "on_unavailable", "it has no default beside "+r.limits[i].what+", which has "+key+
		": write deny, local, which counts for each process, or allow, which admits any number of calls")
}

// readRemoved reads the names of limits that buckets may still hold.
func (r *resourceReader) readRemoved(e entry) {
	for _, it := range r.names(e.value, "removed of "+r.what, "a list, such as [rpm, tpm]") {
		r.identifier(r.pos(it.value), "removed limit "+hint.Quote(it.name)+" of "+r.what, it.name)
		if slices.Contains(r.limitNames(), it.name) {
			r.add(r.pos(it.value), rules.RemovedCurrent,
				"removed names %s, which is a limit of %s: take it out of one of the two", hint.Quote(it.name), r.what)
		}
		r.res.Removed = append(r.res.Removed, it.name)
	}
}

// choice returns the value of a key that takes one of known, and the key's place. If the key is left out, it
// returns the first of known and the resource's place.
func (r *resourceReader) choice(f fields, key string, known []string) (string, Pos) {
	e, ok := f.get(key)
	if !ok {
		return known[0], r.res.Pos
	}
	text, ok := r.scalar(e.value, key+" of "+r.what, hint.OneOf(known))
	if ok && !slices.Contains(known, text) {
		r.add(r.pos(e.value), rules.UnknownValue, "there is no %s %s: "+
			"%s", key, hint.Quote(text), r.Cure(text, known))
	}
	return text, r.pos(e.key)
}

// flag returns the value of a key of what, which is true or false, and the key's place. If the key is left
// out, it returns false and the place of what. ok is false if the value is neither.
func (r *resourceReader) flag(f fields, key, what string, of Pos) (on bool, pos Pos, ok bool) {
	e, ok := f.get(key)
	if !ok {
		return false, of, true
	}
	on, ok = r.boolean(e, key+" of "+what)
	return on, r.pos(e.key), ok
}

// boolean reads the value of e, which is true or false. ok is false if it is neither.
func (r *reader) boolean(e entry, what string) (on, ok bool) {
	if n := e.value; n.Kind != yaml.ScalarNode || n.Tag != tagBool || n.Value != "true" && n.Value != "false" {
		r.wrong(n, what, "true or false, without quotes")
		return false, false
	}
	return e.value.Value == "true", true
}

// readCharged reads the kinds that have a bucket, and their numbers.
func (r *resourceReader) readCharged(e entry) {
	entries, _ := r.mapping(e.value, "entities of "+r.what,
		"the kinds that have a bucket, such as {"+r.exampleKind()+": {}}")
	r.chargedUnknown = len(entries) == 0 || merges(e.value)
	if emptyMapping(e.value) {
		r.add(r.pos(e.key), rules.Empty, "entities of %s is empty: name the kinds that have a bucket, such as "+
			"{%s: "+
			"{}}", r.what, r.exampleKind())
	}
	for _, e := range entries {
		kind := kindIndex(r.kinds, e.name)
		if kind < 0 && r.kindsKnown {
			r.add(r.pos(e.key), rules.UnknownKind, "%s in entities of %s is no kind of entities: "+
				"%s", hint.Quote(e.name),
				r.what, r.Cure(e.name, kindNames(r.kinds)))
		}
		limits := r.restated(e)
		r.addCharged(kind, e.name, limits, r.pos(e.key))
	}
	r.checkKinds(names(entries))
}

// restated returns the limits of one kind.
func (r *resourceReader) restated(e entry) []limit {
	limits := limitsOf(r.limits, e.name)
	entries, _ := r.mapping(e.value, "kind "+hint.Quote(e.name)+" of "+r.what,
		"{}, or limits to restate, such as {rps: {capacity: 10}}")
	restate(r, entries, restatement{
		kind: e.name, base: r.limits, of: "for " + hint.Quote(e.name) + " in " + r.what, keys: restatedKeys(),
	}, func(i int, l limit) { limits[i] = l })
	return limits
}

// restatement is what limits are restated for, in entities or in a plan.
type restatement struct {
	kind string
	base []limit  // numbers that are not restated, by limit
	of   string   // for messages: for "user" in resource "gpt-4"
	keys []string // that they can have
}

// restate reads limits that are restated, and calls set with each.
func restate(r *resourceReader, entries []entry, to restatement, set func(i int, l limit)) {
	for _, le := range entries {
		l := limit{what: "limit " + hint.Quote(le.name) + " restated " + to.of, pos: r.pos(le.key)}
		f, ok := r.fields(le.value, l.what, "its numbers, such as "+exampleLimit(le.name)+": {capacity: 10}",
			to.keys, r.restatedKey)
		i := slices.IndexFunc(r.res.Limits, func(l *Limit) bool { return l.Name == le.name })
		if i < 0 && r.limitsKnown {
			r.add(r.pos(le.key), rules.UnknownLimit, "%s is no limit of %s, and only its limits can be restated: %s",
				hint.Quote(le.name), r.what, r.Cure(le.name, r.limitNames()))
		}
		switch {
		case emptyMapping(le.value):
			r.add(r.pos(le.key), rules.Empty, "%s changes nothing: write what is different, such as {capacity: 10}, "+
				"or leave it out", l.what)
		case !ok:
		case i < 0:
			r.restatedLimit(f, l, limit{}) // for the mistakes in it
		case !r.limits[i].of(to.kind):
			r.add(r.pos(le.key), rules.RestatedNone, "kinds of limit %s of %s do not name %s, so there is nothing to "+
				"restate: add %s to them, or take %s out here", hint.Quote(le.name), r.what, hint.Quote(to.kind),
				hint.Bare(to.kind), hint.Bare(le.name))
		default:
			l = r.restatedLimit(f, l, to.base[i])
			r.checkLimit(l)
			set(i, l)
		}
	}
}

// restatedKey reports keys of limits that restated ones do not take.
func (r *resourceReader) restatedKey(e entry) bool {
	switch e.name {
	case "every":
		r.add(r.pos(e.key), rules.RestatedKey, "every is the same for all kinds, as another period is another "+
			"limit: add one to limits of %s, or restate refill", r.what)
	case "window", "starts", "zone":
		r.add(r.pos(e.key), rules.RestatedKey, "%s is the same for all kinds, as another window is another limit: "+
			"add one to limits of %s, with the kinds that have it", e.name, r.what)
	case "in_flight", "on_crash":
		r.add(r.pos(e.key), rules.RestatedKey, "%s is the same for all kinds: move it to limits of %s, or add a "+
			"limit there, with the kinds that have it", e.name, r.what)
	case "money", "counts":
		r.add(r.pos(e.key), rules.RestatedKey, "%s is the same for all kinds, as the limit's costs are: move it "+
			"to "+
			"limits of %s", e.name, r.what)
	case "per_call":
		r.add(r.pos(e.key), rules.RestatedKey, "per_call is the same on all plans, as a call takes it before its "+
			"plan is known: move it to limits or entities of %s", r.what)
	case "doc", "go_name", "refills", "all_names":
		r.add(r.pos(e.key), rules.RestatedKey, "%s belongs to the limit itself, for all kinds: move it to limits "+
			"of %s", e.name, r.what)
	default:
		return false
	}
	return true
}

// addOnlyKind gives the schema's only kind a bucket. If there are several kinds, it reports that entities is
// missing.
func (r *resourceReader) addOnlyKind() {
	switch {
	case len(r.kinds) == 1:
		name := r.kinds[0].Name
		r.addCharged(0, name, limitsOf(r.limits, name), r.res.Pos)
		if r.kindsKnown {
			r.checkKinds([]string{name})
		}
	case r.kindsKnown:
		r.add(r.res.Pos, rules.MissingKey, "entities is missing in %s: where there are several kinds, name those "+
			"that have a bucket, such as entities: {%s: {}}",
			r.what, r.exampleKind())
	}
}

// addCharged adds a kind that has a bucket, with its numbers.
func (r *resourceReader) addCharged(kind int, name string, limits []limit, pos Pos) {
	c := Charged{Kind: kind, Pos: pos}
	has := func(l limit) bool { return l.of(name) }
	if r.limitsKnown && !slices.ContainsFunc(r.limits, has) {
		r.add(pos, rules.KindEmpty, "no limit of %s is for kind %s, so its buckets would be empty: add %s to "+
			"kinds of one, or take it out of entities", r.what, hint.Quote(name), hint.Bare(name))
	}
	for _, l := range limits {
		c.Limits = append(c.Limits, l.plain())
		c.PerCall = append(c.PerCall, l.perCall.n)
	}
	r.res.Charged, r.own = append(r.res.Charged, c), append(r.own, limits)
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
	return hint.Bare(r.kinds[len(r.kinds)-1].Name)
}

// exampleLimit returns a valid name of a limit for a message: the given one, if it is valid.
func exampleLimit(name string) string {
	if goname.IsIdentifier(name) {
		return name
	}
	return "rps"
}
