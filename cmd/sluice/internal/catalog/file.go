package catalog

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/textfile"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/money"
	"github.com/sluice-go/sluice/runtime/store"
)

// wanted has the entries that a file has for one template. Aliases come last.
type wanted struct {
	spec    *store.Spec
	entries []store.Entry
}

// reader reads a catalog file. It notes each mistake with its place and goes on.
type reader struct {
	*schemafile.Schema

	file     string
	problems []string
	owners   map[string]string // of buckets: the name that has them
}

// read reads a file. Its mistakes come all at once.
func read(s *schemafile.Schema, file string) ([]wanted, error) {
	text, err := textfile.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%w; pass a file as docs/how-to/models.md describes it", err)
	}
	var root, second yaml.Node
	documents := yaml.NewDecoder(bytes.NewReader(text))
	if err := documents.Decode(&root); err != nil && !errors.Is(err, io.EOF) {
		return nil, malformed(gen.CheckYAML(term.Escape(file), text))
	}
	r := &reader{Schema: s, file: file, owners: map[string]string{}}
	if len(root.Content) == 0 {
		return nil, fmt.Errorf("%s is empty: name a template, such as model: {gpt-5: {}}", term.Escape(file))
	}
	switch err := documents.Decode(&second); {
	case err == nil:
		r.add(&second, "a second document starts here: a file has one, so remove the line ---")
	case !errors.Is(err, io.EOF):
		return nil, malformed(gen.CheckYAML(term.Escape(file), text))
	}
	var all []wanted
	r.each(root.Content[0], "the file", nil, func(name string, key, value *yaml.Node) {
		spec, err := s.Resource(name)
		switch {
		case err != nil:
			r.add(key, "%s", program.Text(err))
		case !spec.Names:
			r.add(key, "%s is no template: write names: catalog there in %s", term.Quote(name), s.File)
		default:
			all = append(all, wanted{spec, r.template(spec, value)})
		}
	})
	if len(r.problems) > 0 {
		return nil, malformed(errors.New(strings.Join(r.problems, "\n")))
	}
	return all, nil
}

// malformed returns the error for a file with mistakes, each of which has its place.
func malformed(mistakes error) error {
	return program.AsIs(fmt.Errorf("%w\nsluice: nothing was written", mistakes))
}

// add notes a mistake at n.
func (r *reader) add(n *yaml.Node, text string, args ...any) {
	r.problems = append(r.problems, fmt.Sprintf("%s:%d:%d: ", term.Escape(r.file), n.Line, n.Column)+
		fmt.Sprintf(text, args...))
}

// one reports whether n is one value: a number or a text.
func (r *reader) one(n *yaml.Node, what string) bool {
	if n.Kind == yaml.ScalarNode && n.Tag != "!!null" {
		return true
	}
	r.add(n, "%s is no single value: write one there, or leave it out", what)
	return false
}

// each calls do with the keys of a mapping, each once. known are those that there are, nil for any.
func (r *reader) each(
	n *yaml.Node, what string, known []string, do func(name string, key, value *yaml.Node),
) {
	if n.Kind != yaml.MappingNode {
		r.add(n, "%s is no mapping: write {} for nothing", what)
		return
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch name := key.Value; {
		case seen[name]:
			r.add(key, "%s has %s twice: leave one out", what, term.Quote(name))
		case known != nil && !slices.Contains(known, name):
			r.add(key, "%s has no %s: %s", what, term.Quote(name), gen.Cure(name, known))
		default:
			seen[name] = true
			do(name, key, value)
		}
	}
}

// template reads the entries of a template.
func (r *reader) template(spec *store.Spec, n *yaml.Node) []store.Entry {
	var entries, aliases []store.Entry
	place := map[string]int{} // the line of each name and alias
	name := func(key *yaml.Node, text string) bool {
		if why := store.CheckName(text); why != "" {
			if !strings.Contains(why, ": ") {
				why += ": write 1 to 128 bytes of text that can be printed"
			}
			r.add(key, "name %s %s", term.Quote(text), why)
			return false
		}
		if line, twice := place[text]; twice {
			r.add(key, "name %s is in line %d too: a name is one entry, or an alias of one entry",
				term.Quote(text), line)
			return false
		}
		place[text] = key.Line
		return true
	}
	var also []*yaml.Node // lists of aliases
	var of []string       // the name that each list belongs to
	r.each(n, spec.Resource, nil, func(text string, key, value *yaml.Node) {
		if !name(key, text) {
			return
		}
		e := store.Entry{Name: text}
		r.each(value, term.Quote(text), []string{"aliases", "buckets", "usage", "entities", "plans"},
			func(field string, _, value *yaml.Node) {
				switch field {
				case "aliases":
					also, of = append(also, value), append(of, text)
				case "buckets":
					e.Buckets = r.buckets(value)
				case "usage":
					r.prices(spec, &e, value)
				case "entities":
					r.entities(spec, &e, "", value)
				case "plans":
					r.plans(spec, &e, value)
				}
			})
		entries = append(entries, e)
		r.owns(key, text, e.ResourceAt(spec.Resource))
	})
	for i, list := range also {
		if list.Kind != yaml.SequenceNode {
			r.add(list, "aliases of %s is no list: write [other-name]", term.Quote(of[i]))
			continue
		}
		for _, alias := range list.Content {
			if r.one(alias, "alias of "+term.Quote(of[i])) && name(alias, alias.Value) {
				aliases = append(aliases, store.Entry{Name: alias.Value, Alias: of[i]})
			}
		}
	}
	return append(entries, aliases...)
}

// buckets reads the resource that had the buckets of an entry before.
func (r *reader) buckets(n *yaml.Node) string {
	if !r.one(n, "buckets") {
		return ""
	}
	switch {
	case schemafile.CheckResource(n.Value) != nil:
		r.add(n, "buckets %s is no name of a resource: write the one that had the buckets before",
			term.Quote(n.Value))
	case slices.ContainsFunc(r.Specs, func(s *store.Spec) bool { return s.Names && s.Resource == n.Value }):
		r.add(n, "buckets %s are those of all names of the template: write the resource that had the buckets "+
			"before, or leave it out", term.Quote(n.Value))
	}
	return n.Value
}

// owns notes that a name has the buckets of a resource. Two names would give a bucket each other's numbers.
func (r *reader) owns(key *yaml.Node, name, resource string) {
	if other, twice := r.owners[resource]; twice {
		r.add(key, "%s and %s both have the buckets of %s: make one an alias of the other, or take buckets out",
			term.Quote(other), term.Quote(name), term.Quote(resource))
	}
	r.owners[resource] = name
}

// prices reads usage, which restates prices.
func (r *reader) prices(spec *store.Spec, e *store.Entry, n *yaml.Node) {
	if len(spec.Usages) == 0 {
		r.add(n, "%s has no prices: leave usage out", spec.Resource)
		return
	}
	e.Prices = slices.Repeat([]int64{-1}, len(spec.Usages))
	r.each(n, "usage of "+term.Quote(e.Name), spec.Usages, func(usage string, _, value *yaml.Node) {
		r.each(value, "usage "+usage, []string{"price"}, func(_ string, _, value *yaml.Node) {
			if !r.one(value, "price of "+usage) {
				return
			}
			picos, why := gen.ParsePrice(value.Value)
			if value.Value == "0" {
				picos, why = 0, ""
			}
			if why != "" {
				r.add(value, "price %s %s", term.Quote(value.Value), why)
				return
			}
			e.Prices[slices.Index(spec.Usages, usage)] = picos
		})
	})
}

// plans reads what is restated for plans.
func (r *reader) plans(spec *store.Spec, e *store.Entry, n *yaml.Node) {
	if spec.Plans == nil {
		r.add(n, "%s has no plans: leave them out", spec.Resource)
		return
	}
	r.each(n, "plans of "+term.Quote(e.Name), spec.Plans.Names, func(plan string, _, value *yaml.Node) {
		r.entities(spec, e, plan, value)
	})
}

// entities reads what is restated for kinds, on plan if that is not empty.
func (r *reader) entities(spec *store.Spec, e *store.Entry, plan string, n *yaml.Node) {
	r.each(n, "entities of "+term.Quote(e.Name), nil, func(kind string, key, value *yaml.Node) {
		at := kind
		scope, err := r.Scope(kind, spec.Resource)
		if plan != "" {
			at = store.PlanAt(plan, kind)
		}
		switch {
		case err != nil:
			r.add(key, "%s", program.Text(err))
			return
		case !slices.Contains(spec.EntryAt(), at):
			r.add(key, "%s is not on plans: leave it out", kind)
			return
		}
		numbers := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
		r.each(value, at, nil, func(limit string, key, value *yaml.Node) {
			before := len(r.problems)
			i, l, err := r.limit(scope, limit, value)
			switch {
			case len(r.problems) > before:
			case err != nil:
				r.add(key, "%s", program.Text(err))
			default:
				numbers.Limits[i] = &l
			}
		})
		if numbers.Overrides() {
			e.Numbers = append(e.Numbers, numbers)
		}
	})
}

// limit reads the numbers of a limit.
func (r *reader) limit(scope schemafile.Scope, name string, n *yaml.Node) (int, bucket.Limit, error) {
	values := map[string]string{}
	r.each(n, "limit "+name, []string{"capacity", "burst", "refill", "every"},
		func(field string, _, value *yaml.Node) {
			switch {
			case !r.one(value, field+" of "+name):
			case strings.ContainsAny(value.Value, ",/="):
				r.add(value, "%s of %s is %s: write one number, or a period such as 1m", field, name,
					term.Quote(value.Value))
			default:
				values[field] = value.Value
			}
		})
	if values["capacity"] == "unlimited" {
		if values["burst"] != "" || values["refill"] != "" {
			r.add(n, "burst and refill of %s go with a number as capacity: an unlimited one has the largest there "+
				"are, so remove them", name)
		}
		return unlimited(scope, name)
	}
	text := name + "=" + values["capacity"]
	for _, part := range [][2]string{{"every", "/"}, {"burst", ",burst="}, {"refill", ",refill="}} {
		if value := values[part[0]]; value != "" {
			text = text + part[1] + value
		}
	}
	return scope.Parse(text)
}

// unlimited returns a limit with the capacity unlimited.
func unlimited(scope schemafile.Scope, name string) (int, bucket.Limit, error) {
	i, err := scope.Limit(name)
	if err == nil {
		err = scope.Has(i)
	}
	if err != nil {
		return 0, bucket.Limit{}, err
	}
	l := scope.Own().Limits[i]
	const most, fastest = 1_000_000_000_000 * bucket.Milli, 10_000_000 // as bucket.Limit.Unlimited has it
	l.Capacity = most
	if l.Refill > 0 {
		l.Refill = min(most, bucket.Mul(fastest, l.Period))
	}
	if scope.Spec.Unit(i) != "" {
		l.Capacity = int64(money.Unlimited)
	}
	l.Burst = l.Capacity
	return i, l, nil
}
