package load

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// plan returns the plan of the flags.
func (c *Command) plan(s *schemafile.Schema) (*load.Plan, error) {
	plan := &load.Plan{Specs: s.Specs, Entities: c.Entities, Children: c.Children, Seed: c.Seed}
	var err error
	if plan.Keys, err = c.keys(); err != nil {
		return nil, err
	}
	if plan.Mix, err = c.mix(s); err != nil {
		return nil, err
	}
	for i := range plan.Mix {
		portion := &plan.Mix[i]
		spec := s.Specs[portion.Resource]
		for limit, perCall := range spec.Kinds[portion.Kind].PerCall {
			n := int64(1)
			if spec.Unit(limit) != "" {
				n = int64(money.Cent)
			}
			if perCall > 0 || !spec.Charges(portion.Kind, limit) {
				n = 0 // callers leave it out
			}
			portion.Cost = append(portion.Cost, load.Range{Least: n, Most: n})
		}
	}
	for _, text := range c.Cost {
		if err := c.costs(s, plan, "cost", text,
			func(portion *load.Portion) []load.Range { return portion.Cost }); err != nil {
			return nil, err
		}
	}
	if err := payable(plan); err != nil {
		return nil, err
	}
	for _, text := range c.Settle {
		if err := settled(s, text); err != nil {
			return nil, err
		}
		if err := c.costs(s, plan, "settle", text, func(portion *load.Portion) []load.Range {
			if portion.Settle == nil {
				portion.Settle = slices.Repeat([]load.Range{load.AsAcquired}, len(portion.Cost))
			}
			return portion.Settle
		}); err != nil {
			return nil, err
		}
	}
	return plan, nil
}

// payable returns a usage error for a cost above the burst of a charged bucket: no call could be admitted.
func payable(plan *load.Plan) error {
	for i, portion := range plan.Mix {
		spec := specOf(plan, i)
		for kind := portion.Kind; kind != store.NoParent; kind = spec.Kinds[kind].Parent {
			k := spec.Kinds[kind]
			for j, limit := range k.Limits {
				if !k.Has(j) || limit.Prepaid() { // a Grant may fill it
					continue
				}
				if burst := spec.Whole(j, limit.Burst); portion.Cost[j].Least > burst {
					return program.Usagef("--cost %s:%s=%s: a bucket of kind %s never has more than %s, so no call of kind "+
						"%s would be admitted: pass less",
						spec.Resource, spec.Limits[j], portion.Cost[j].In(spec.Unit(j)), k.Name,
						format.Number(limit.Burst, spec.Unit(j)), spec.Kinds[portion.Kind].Name)
				}
			}
			if spec.Cascade == store.CascadeNone {
				break
			}
		}
	}
	return nil
}

// settled returns a usage error for a --settle of a limit in flight, which a settle does not change.
func settled(s *schemafile.Schema, text string) error {
	what, _, _ := strings.Cut(text, "=")
	cut := strings.LastIndexByte(what, ':')
	resource, limit := what[:max(0, cut)], what[cut+1:]
	for _, spec := range s.Specs {
		i := slices.Index(spec.Limits, limit)
		if i >= 0 && spec.InFlight(i) && (cut < 0 || resource == spec.Resource) {
			return program.Usagef("--settle %q: %s of %s is of calls in flight, whose slots come back when the call "+
				"ends: leave it out", text, limit, spec.Resource)
		}
	}
	return nil
}

// mix reads --mix.
func (c *Command) mix(s *schemafile.Schema) (all []load.Portion, err error) {
	if len(c.Mix) == 0 {
		for r, spec := range s.Specs {
			for k := range spec.Kinds {
				if spec.Kinds[k].Limits != nil {
					all = append(all, load.Portion{Resource: r, Kind: k, Weight: 1})
				}
			}
		}
		return all, nil
	}
	for _, text := range c.Mix {
		what, weight, weighed := strings.Cut(text, "=")
		kind, name, ok := strings.Cut(what, ":")
		if !ok || kind == "" || name == "" {
			return nil, program.Usagef("--mix %q is not KIND:RESOURCE[=WEIGHT]: write it like user:gpt-4=3",
				text)
		}
		portion := load.Portion{Weight: 1}
		if weighed {
			if portion.Weight, err = strconv.ParseFloat(weight, 64); err != nil ||
				!(portion.Weight > 0 && portion.Weight <= 1e9) {
				return nil, program.Usagef("--mix %q: the weight %q is no number above 0: correct it", text, weight)
			}
		}
		if strings.Contains(kind, "-") {
			return nil,
				program.Usagef("--mix %q: %s is an entity: pass a kind, whose number of entities is --entities", text,
					kind)
		}
		l, err := s.Scope(kind, name)
		if err != nil {
			return nil, ofFlag("mix", text, err)
		}
		portion.Resource, portion.Kind = slices.Index(s.Specs, l.Spec), l.Kind
		if slices.ContainsFunc(all, func(o load.Portion) bool {
			return o.Resource == portion.Resource &&
				o.Kind == portion.Kind
		}) {
			return nil, program.Usagef("--mix %q: %s on %s is given twice: leave one out", text, kind, name)
		}
		all = append(all, portion)
	}
	return all, nil
}

// ofFlag adds the flag to a usage error about its text.
func ofFlag(flag, text string, err error) error {
	if said, ok := errors.AsType[program.UsageError](err); ok {
		return program.Usagef("--%s %q: %s", flag, text, said.Error())
	}
	return err
}

// costs reads [RESOURCE:]LIMIT=N[..M] of a flag. It sets the range in the slices that of returns, for each
// portion of the mix that has the limit.
func (c *Command) costs(
	s *schemafile.Schema, plan *load.Plan, flag, text string, of func(*load.Portion) []load.Range,
) error {
	wrong := func(format string, args ...any) error {
		return program.Usagef("--%s %q: %s", flag, text, fmt.Sprintf(format, args...))
	}
	what, amount, ok := strings.Cut(text, "=")
	if !ok {
		return wrong("it is not LIMIT=N or LIMIT=N..M: write it like %s=1..10",
			s.Specs[plan.Mix[0].Resource].Limits[0])
	}
	resource, limit := "", what
	if i := strings.LastIndexByte(what, ':'); i >= 0 { // resources may have ':' in their names, limits do not
		resource, limit = what[:i], what[i+1:]
		if _, err := s.Resource(resource); err != nil {
			return ofFlag(flag, text, err)
		}
	}
	var names []string
	var ranges []*load.Range
	var first *store.Spec
	unit := ""
	for i := range plan.Mix {
		portion := &plan.Mix[i]
		spec := s.Specs[portion.Resource]
		if resource != "" && spec.Resource != resource {
			continue
		}
		charged := chargedLimits(spec, portion.Kind)
		names = append(names, charged...)
		if !slices.Contains(charged, limit) {
			continue
		}
		l := slices.Index(spec.Limits, limit)
		switch own := spec.Unit(l); {
		case first == nil:
			first, unit = spec, own
		case own != unit:
			return wrong("%s of %s is in %s, and that of %s in %s: name the resource, such as %s:%s", limit,
				first.Resource, counted(unit), spec.Resource, counted(own), first.Resource, text)
		}
		ranges = append(ranges, &of(portion)[l])
	}
	r, why := rangeOf(unit, amount)
	if why != "" {
		return wrong("%s", why)
	}
	for _, to := range ranges {
		*to = r
	}
	switch {
	case ranges != nil:
		return nil
	case names == nil:
		return wrong("the mix has no calls on %s: add them, or leave this out", resource)
	}
	slices.Sort(names)
	return wrong("no resource in the mix has a limit %q: %s", limit, gen.Cure(limit, slices.Compact(names)))
}

// counted names what a limit with a unit is a number of: a currency, or tokens.
func counted(unit string) string {
	if unit == "" {
		return "tokens"
	}
	return unit
}

// rangeOf reads N[..M], amounts of a currency or, if unit is empty, whole tokens. why is what is wrong.
func rangeOf(unit, text string) (r load.Range, why string) {
	least, most, spans := strings.Cut(text, "..")
	if !spans {
		most = least
	}
	for _, n := range []struct {
		text string
		to   *int64
	}{{least, &r.Least}, {most, &r.Most}} {
		v, err := strconv.ParseInt(n.text, 10, 64)
		highest := int64(1e12)
		if unit != "" {
			amount, problem := money.Parse(n.text)
			v, err, highest = int64(amount), problem, int64(money.Unlimited)
		}
		switch {
		case unit != "" && (err != nil || v > highest):
			return r, fmt.Sprintf("%q is out of range: pass an amount in %s, 0 to %v", n.text, unit, money.Unlimited)
		case err != nil || v < 0 || v > highest:
			return r, fmt.Sprintf("%q is out of range: pass whole tokens, 0 to 1000000000000", n.text)
		}
		*n.to = v
	}
	if r.Most < r.Least {
		return r, "M is below N in N..M: swap them"
	}
	return r, ""
}

// chargedLimits returns the limits that calls for a kind are charged for.
func chargedLimits(spec *store.Spec, kind int) (names []string) {
	for i, name := range spec.Limits {
		if spec.Charges(kind, i) {
			names = append(names, name)
		}
	}
	return names
}

// keys reads --hot and --zipf.
func (c *Command) keys() (load.Keys, error) {
	if c.Hot == nil {
		return load.Keys{Zipf: value(c.Zipf)}, nil
	}
	count, portion, ok := strings.Cut(*c.Hot, "=")
	percent, isPercent := strings.CutSuffix(portion, "%")
	n, errN := strconv.Atoi(count)
	x, errX := strconv.ParseFloat(percent, 64)
	if !ok || !isPercent || errN != nil || errX != nil || n < 1 || n > c.Entities || !(x > 0 && x <= 100) {
		return load.Keys{}, program.Usagef("--hot %q is not K=PERCENT: write it like 10=80%%, with K up to %d "+
			"(--entities) and up to 100%%", *c.Hot, c.Entities)
	}
	return load.Keys{Hot: n, HotPortion: x / 100}, nil
}

// announcement describes the load before it starts: where it writes, what, and when it ends.
func (c *Command) announcement(at *place, plan *load.Plan) string {
	var s strings.Builder
	fmt.Fprintf(&s, "loading %s, %s\n", at.name, c.manner())
	var all float64
	for _, portion := range plan.Mix {
		all += portion.Weight
	}
	for i, portion := range plan.Mix {
		spec := plan.Specs[portion.Resource]
		charged := plan.Charged(i, 0)
		fmt.Fprintf(&s, "  %.0f%% %s on %s, %s", 100*portion.Weight/all, strings.Join(charged, " with "),
			spec.Resource, c.among(spec.Kinds[portion.Kind].Prefix))
		for j, limit := range spec.Limits {
			if !spec.Charges(portion.Kind, j) {
				continue
			}
			fmt.Fprintf(&s, ", %s %s", limit, costOf(spec, portion.Kind, j, portion.Cost[j]))
			if portion.Settle != nil && portion.Settle[j] != load.AsAcquired {
				fmt.Fprintf(&s, " settled as %s", costOf(spec, portion.Kind, j, portion.Settle[j]))
			}
		}
		s.WriteByte('\n')
	}
	fmt.Fprintf(&s, "  ends after %v", c.Duration)
	if c.Calls != nil {
		fmt.Fprintf(&s, " or %s", format.Quantity(*c.Calls, "call"))
	}
	if bound := c.bound(); bound > 0 {
		consumed := "are"
		if bound == 1 {
			consumed = "is"
		}
		fmt.Fprintf(&s, ", or once %s %s consumed", format.Quantity(bound, "capacity unit"), consumed)
		if c.priced() {
			fmt.Fprintf(&s, ", of %s at most, besides pending calls",
				dollars(float64(bound)/1e6*max(value(c.PriceRead), value(c.PriceWrite))))
		}
	}
	s.WriteString("; Ctrl-C ends it early\n")
	return s.String()
}

// among describes the distribution of calls among entities.
func (c *Command) among(prefix string) string {
	if c.Entities == 1 {
		return "alone"
	}
	text := fmt.Sprintf("of those to %s%s%d", prefix, load.Prefix, c.Entities-1)
	switch {
	case c.Hot != nil:
		k, portion, _ := strings.Cut(*c.Hot, "=")
		text += fmt.Sprintf(", %s to the first %s", portion, k)
	case c.Zipf != nil:
		text += fmt.Sprintf(", the nth by 1/n^%v", *c.Zipf)
	}
	return text
}

// manner describes the callers.
func (c *Command) manner() string {
	text := format.Quantity(c.Concurrency, "caller")
	if c.Limiters > 1 {
		text += " with " + format.Quantity(c.Limiters, "limiter")
	}
	if c.Rate != nil {
		return fmt.Sprintf("%s, %s calls a second", text, number(*c.Rate))
	}
	return text + ", as fast as they are answered"
}

// costOf writes a range of costs. 0 stands for perCall if that is not 0.
func costOf(spec *store.Spec, kind, limit int, r load.Range) string {
	if perCall := spec.Kinds[kind].PerCall[limit]; r == (load.Range{}) && perCall > 0 {
		return format.Number(bucket.Mul(perCall, spec.Scale(limit)), spec.Unit(limit))
	}
	return r.In(spec.Unit(limit))
}

// specOf returns the resource of a portion of the mix.
func specOf(plan *load.Plan, portion int) *store.Spec {
	return plan.Specs[plan.Mix[portion].Resource]
}
