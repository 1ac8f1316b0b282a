package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime"
)

type entityCommand struct {
	Put      entityPut      `cmd:"" help:"Store who an entity's parent is, for calls that know the entity's id alone."`
	Show     entityShow     `cmd:"" help:"Show what is stored of an entity and of its ancestors."`
	Children entityChildren `cmd:"" help:"List the entities whose stored parent this is, one per line."`
	Delete   entityDelete   `cmd:"" help:"Remove what is stored of an entity; its buckets and overrides stay."`
}

// entityArg names one entity of a table.
type entityArg struct {
	where
	schemaFile

	Entity string `arg:"" help:"Entity as stored: its kind, '-', its id, as in user-123."`
}

// entities is where entities are stored, and the schema that they are of.
type entities struct {
	*schema
	runtime.MemberStore

	store store
}

// entities reads the schema, checks m against it, and opens the store, for the caller to close.
func (c entityArg) entities(ctx context.Context, p Program, m runtime.Member) (entities, error) {
	s, err := c.read()
	if err != nil {
		return entities{}, err
	}
	if err := m.Check(s.kinds); err != nil {
		return entities{}, usageError{err.Error()}
	}
	at, err := c.open(ctx, p, c.schemaFile)
	if err != nil {
		return entities{}, err
	}
	return entities{s, at.members(), at}, nil
}

type entityPut struct {
	entityArg

	Parent    *string `placeholder:"ENTITY" help:"Its parent as stored, as in project-7. The default is the parent that it is stored with."`
	NoCascade bool    `help:"Calls that look it up charge its own bucket alone, whatever the resource's cascade."`
}

// Help is an example.
func (entityPut) Help() string { return "Example: sluice entity put user-123 --parent project-7" }

// Run stores the entity in place of what was stored of it, and prints the chain that it is at the end of. A parent that is
// not given is not taken away: look-ups would fail, or stop charging it.
func (c entityPut) Run(ctx context.Context, p Program) error {
	m := runtime.Member{Entity: c.Entity, Cascade: !c.NoCascade}
	if c.Parent != nil {
		if m.Parent = *c.Parent; m.Parent == "" { // a variable that is not set must not take the parent away
			return usageError{"--parent is empty: want an entity as stored, as in project-7; without --parent the stored one is kept"}
		}
	}
	e, err := c.entities(ctx, p, m)
	if err != nil {
		return err
	}
	defer e.store.close()
	before, found, err := e.Get(ctx, m.Entity)
	if err != nil {
		return e.store.explain(err)
	}
	if m.Parent == "" {
		m.Parent = before.Parent
		if err := m.Check(e.kinds); err != nil {
			return fmt.Errorf("%w; it is what is stored of %s: pass --parent", err, m.Entity)
		}
	}
	if needing := e.needing(e.kindOf(m.Entity)); m.Parent == "" && m.Cascade && len(needing) > 0 {
		return usageError{fmt.Sprintf("--parent is missing, which look-ups for %s need: run `%s`, or pass --no-cascade",
			strings.Join(needing, ", "), e.put(m.Entity))}
	}
	if err := e.Put(ctx, m); err != nil {
		return e.store.explain(err)
	}
	switch {
	case !found:
		p.say("stored %s\n", m.Entity)
	case before == m:
		p.say("stored %s, as it was\n", m.Entity)
	case c.Parent == nil && m.Parent != "":
		p.say("stored %s, instead of cascade %s; its parent %s is kept\n", m.Entity, yes(before.Cascade), m.Parent)
	default:
		p.say("stored %s, instead of parent %s, cascade %s\n", m.Entity, dash(before.Parent), yes(before.Cascade))
	}
	if _, err := e.show(ctx, p, m.Entity); err != nil {
		return err
	}
	p.say("%s\n", takenUp())
	return nil
}

type entityShow struct{ entityArg }

// Help is an example.
func (entityShow) Help() string { return "Example: sluice entity show user-123" }

// Run prints the entity and its ancestors, as far as they are stored.
func (c entityShow) Run(ctx context.Context, p Program) error {
	e, err := c.entities(ctx, p, runtime.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.close()
	found, err := e.show(ctx, p, c.Entity)
	if err == nil && !found {
		err = fmt.Errorf("%s is not stored: run `%s`", c.Entity, e.put(c.Entity))
	}
	return err
}

type entityChildren struct{ entityArg }

// Help is an example.
func (entityChildren) Help() string { return "Example: sluice entity children project-7 | wc -l" }

// Run prints the children as they come.
func (c entityChildren) Run(ctx context.Context, p Program) error {
	e, err := c.entities(ctx, p, runtime.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.close()
	none := true
	for child, err := range e.Children(ctx, c.Entity) {
		if err != nil {
			return e.store.explain(err)
		}
		p.say("%s\n", child)
		none = false
	}
	if none {
		p.note("no stored entity has the parent %s\n", c.Entity)
	}
	return nil
}

type entityDelete struct {
	entityArg

	Force bool `help:"Delete it though it has children; look-ups that pass it fail then."`
}

// Help is an example.
func (entityDelete) Help() string { return "Example: sluice entity delete user-123" }

// named is how many children a refusal names.
const named = 3

// Run deletes the entity, unless others are stored as its children.
func (c entityDelete) Run(ctx context.Context, p Program) error {
	e, err := c.entities(ctx, p, runtime.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.close()
	_, found, err := e.Get(ctx, c.Entity)
	if err != nil {
		return e.store.explain(err)
	}
	if !found {
		p.say("%s is not stored: nothing to delete\n", c.Entity)
		return nil
	}
	if !c.Force {
		if err := e.childless(ctx, c.Entity); err != nil {
			return err
		}
	}
	if err := e.Delete(ctx, c.Entity); err != nil {
		return e.store.explain(err)
	}
	p.say("deleted %s\n%s\n", c.Entity, takenUp())
	if shared := e.sharing(c.Entity); len(shared) > 0 {
		p.say("its shares of %s stay: regional sync manages them, and takes back what nobody uses\n", strings.Join(shared, ", "))
	}
	return nil
}

// sharing returns the resources of which regions share out what an entity has.
func (e entities) sharing(entity string) (names []string) {
	for _, spec := range e.specs {
		if spec.Regions != nil && spec.Kinds[e.kindOf(entity)].Limits != nil {
			names = append(names, spec.Resource)
		}
	}
	return names
}

// childless fails if entity has children.
func (e entities) childless(ctx context.Context, entity string) error {
	var children []string
	for child, err := range e.Children(ctx, entity) {
		if err != nil {
			return e.store.explain(err)
		}
		if len(children) == named {
			children = append(children, "others")
			break
		}
		children = append(children, child)
	}
	if len(children) == 0 {
		return nil
	}
	return fmt.Errorf("%s is the parent of %s, whose look-ups would fail: nothing was deleted; "+
		"give them another parent first, or pass --force", entity, strings.Join(children, ", "))
}

// show prints what is stored of entity and its ancestors, as far as look-ups go. found is false where nothing is stored of
// entity itself, and nothing printed.
func (e entities) show(ctx context.Context, p Program, entity string) (found bool, err error) {
	rows := [][]string{{"ENTITY", "PARENT", "CASCADE"}}
	for entity != "" {
		m, stored, err := e.Get(ctx, entity)
		switch {
		case err != nil:
			return false, e.store.explain(err)
		case stored:
			rows = append(rows, []string{entity, dash(m.Parent), yes(m.Cascade), e.broken(m)})
		case len(rows) == 1:
			return false, nil
		default:
			rows = append(rows, []string{entity, "-", "-", cmp.Or(e.lacking(entity, "not stored"), "not stored (not needed)")})
		}
		entity = m.Parent
		if !m.Cascade || m.Check(e.kinds) != nil {
			break
		}
	}
	return true, texttable.Write(p.Stdout, "  ", "llll", rows)
}

// broken says why look-ups fail at m, if they do.
func (e entities) broken(m runtime.Member) string {
	switch err := m.Check(e.kinds); {
	case err != nil:
		return strings.TrimPrefix(err.Error(), "sluice: ")
	case m.Cascade && m.Parent == "":
		return e.lacking(m.Entity, "no parent")
	}
	return ""
}

// lacking says what it means that look-ups do not find the parent of entity, and why that is; nothing where none needs it.
func (e entities) lacking(entity, why string) string {
	if needing := e.needing(e.kindOf(entity)); len(needing) > 0 {
		return fmt.Sprintf("%s: look-ups for %s fail, run `%s`", why, strings.Join(needing, ", "), e.put(entity))
	}
	return ""
}

// put returns the command that stores entity.
func (s *schema) put(entity string) string {
	command := "sluice entity put " + entity
	if parent := s.kinds[s.kindOf(entity)].Parent; parent != runtime.NoParent {
		command += " --parent " + s.kinds[parent].Prefix + "<id>"
	}
	return command
}

func dash(entity string) string {
	if entity == "" {
		return "-"
	}
	return entity
}

func yes(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
