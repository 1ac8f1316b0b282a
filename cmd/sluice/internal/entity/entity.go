package entity

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/store"
)

type Command struct {
	Put      putCommand      `cmd:"" help:"Store who an entity's parent is, for calls that know the entity's id alone."`
	Show     showCommand     `cmd:"" help:"Show what is stored of an entity and of its ancestors."`
	Children childrenCommand `cmd:"" help:"List the entities whose stored parent this is, one per line."`
	Delete   deleteCommand   `cmd:"" help:"Remove what is stored of an entity; its buckets and overrides stay."`
}

// entityArg names one entity of a table.
type argument struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Entity string `arg:"" help:"Entity as stored: its kind, '-', its id, as in user-123."`
}

// entities is where entities are stored, and the schema that they are of.
type entities struct {
	*schemafile.Schema
	store.MemberStore

	store bucketstore.Store
}

// entities reads the schema, checks m against it, and opens the store, for the caller to close.
func (c argument) entities(ctx context.Context, p program.Env, m store.Member) (entities, error) {
	s, err := c.Read()
	if err != nil {
		return entities{}, err
	}
	if err := m.Check(s.Kinds); err != nil {
		return entities{}, program.Usagef("%v", err)
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return entities{}, err
	}
	return entities{s, at.Members(), at}, nil
}

type putCommand struct {
	argument

	Parent    *string `placeholder:"ENTITY" help:"Its parent as stored, as in project-7. The default is the parent that it is stored with."`
	NoCascade bool    `help:"Calls that look it up charge its own bucket alone, whatever the resource's cascade."`
}

// Help is an example.
func (putCommand) Help() string { return "Example: sluice entity put user-123 --parent project-7" }

// Run stores the entity in place of what was stored of it, and prints the chain that it is at the end of. A parent that is
// not given is not taken away: look-ups would fail, or stop charging it.
func (c putCommand) Run(ctx context.Context, p program.Env) error {
	m := store.Member{Entity: c.Entity, Cascade: !c.NoCascade}
	if c.Parent != nil {
		if m.Parent = *c.Parent; m.Parent == "" { // a variable that is not set must not take the parent away
			return program.Usagef("--parent is empty: want an entity as stored, as in project-7; without --parent the stored one is kept")
		}
	}
	e, err := c.entities(ctx, p, m)
	if err != nil {
		return err
	}
	defer e.store.Close()
	before, found, err := e.Get(ctx, m.Entity)
	if err != nil {
		return e.store.Explain(err)
	}
	if m.Parent == "" {
		m.Parent = before.Parent
		if err := m.Check(e.Kinds); err != nil {
			return fmt.Errorf("%w; it is what is stored of %s: pass --parent", err, m.Entity)
		}
	}
	if needing := e.Needing(e.KindOf(m.Entity)); m.Parent == "" && m.Cascade && len(needing) > 0 {
		return program.Usagef("--parent is missing, which look-ups for %s need: run `%s`, or pass --no-cascade",
			strings.Join(needing, ", "), putLine(e.Schema, m.Entity))
	}
	if err := e.Put(ctx, m); err != nil {
		return e.store.Explain(err)
	}
	switch {
	case !found:
		p.Say("stored %s\n", m.Entity)
	case before == m:
		p.Say("stored %s, as it was\n", m.Entity)
	case c.Parent == nil && m.Parent != "":
		p.Say("stored %s, instead of cascade %s; its parent %s is kept\n", m.Entity, yes(before.Cascade), m.Parent)
	default:
		p.Say("stored %s, instead of parent %s, cascade %s\n", m.Entity, dash(before.Parent), yes(before.Cascade))
	}
	if _, err := e.show(ctx, p, m.Entity); err != nil {
		return err
	}
	p.Say("%s\n", bucketstore.TakenUp())
	return nil
}

type showCommand struct{ argument }

// Help is an example.
func (showCommand) Help() string { return "Example: sluice entity show user-123" }

// Run prints the entity and its ancestors, as far as they are stored.
func (c showCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.entities(ctx, p, store.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.Close()
	found, err := e.show(ctx, p, c.Entity)
	if err == nil && !found {
		err = fmt.Errorf("%s is not stored: run `%s`", c.Entity, putLine(e.Schema, c.Entity))
	}
	return err
}

type childrenCommand struct{ argument }

// Help is an example.
func (childrenCommand) Help() string { return "Example: sluice entity children project-7 | wc -l" }

// Run prints the children as they come.
func (c childrenCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.entities(ctx, p, store.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.Close()
	none := true
	for child, err := range e.Children(ctx, c.Entity) {
		if err != nil {
			return e.store.Explain(err)
		}
		p.Say("%s\n", child)
		none = false
	}
	if none {
		p.Note("no stored entity has the parent %s\n", c.Entity)
	}
	return nil
}

type deleteCommand struct {
	argument

	Force bool `help:"Delete it though it has children; look-ups that pass it fail then."`
}

// Help is an example.
func (deleteCommand) Help() string { return "Example: sluice entity delete user-123" }

// named is how many children a refusal names.
const named = 3

// Run deletes the entity, unless others are stored as its children.
func (c deleteCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.entities(ctx, p, store.Member{Entity: c.Entity})
	if err != nil {
		return err
	}
	defer e.store.Close()
	_, found, err := e.Get(ctx, c.Entity)
	if err != nil {
		return e.store.Explain(err)
	}
	if !found {
		p.Say("%s is not stored: nothing to delete\n", c.Entity)
		return nil
	}
	if !c.Force {
		if err := e.childless(ctx, c.Entity); err != nil {
			return err
		}
	}
	if err := e.Delete(ctx, c.Entity); err != nil {
		return e.store.Explain(err)
	}
	p.Say("deleted %s\n%s\n", c.Entity, bucketstore.TakenUp())
	if shared := e.sharing(c.Entity); len(shared) > 0 {
		p.Say("its shares of %s stay: regional sync manages them, and takes back what nobody uses\n", strings.Join(shared, ", "))
	}
	return nil
}

// sharing returns the resources of which regions share out what an entity has.
func (e entities) sharing(entity string) (names []string) {
	for _, spec := range e.Specs {
		if spec.Regions != nil && spec.Kinds[e.KindOf(entity)].Limits != nil {
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
			return e.store.Explain(err)
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
func (e entities) show(ctx context.Context, p program.Env, entity string) (found bool, err error) {
	rows := [][]string{{"ENTITY", "PARENT", "CASCADE"}}
	for entity != "" {
		m, stored, err := e.Get(ctx, entity)
		switch {
		case err != nil:
			return false, e.store.Explain(err)
		case stored:
			rows = append(rows, []string{entity, dash(m.Parent), yes(m.Cascade), e.broken(m)})
		case len(rows) == 1:
			return false, nil
		default:
			rows = append(rows, []string{entity, "-", "-", cmp.Or(e.lacking(entity, "not stored"), "not stored (not needed)")})
		}
		entity = m.Parent
		if !m.Cascade || m.Check(e.Kinds) != nil {
			break
		}
	}
	return true, texttable.Write(p.Stdout, "  ", "llll", rows)
}

// broken says why look-ups fail at m, if they do.
func (e entities) broken(m store.Member) string {
	switch err := m.Check(e.Kinds); {
	case err != nil:
		return strings.TrimPrefix(err.Error(), "sluice: ")
	case m.Cascade && m.Parent == "":
		return e.lacking(m.Entity, "no parent")
	}
	return ""
}

// lacking says what it means that look-ups do not find the parent of entity, and why that is; nothing where none needs it.
func (e entities) lacking(entity, why string) string {
	if needing := e.Needing(e.KindOf(entity)); len(needing) > 0 {
		return fmt.Sprintf("%s: look-ups for %s fail, run `%s`", why, strings.Join(needing, ", "), putLine(e.Schema, entity))
	}
	return ""
}

// putCommand returns the command that stores entity.
func putLine(s *schemafile.Schema, entity string) string {
	command := "sluice entity put " + entity
	if parent := s.Kinds[s.KindOf(entity)].Parent; parent != store.NoParent {
		command += " --parent " + s.Kinds[parent].Prefix + "<id>"
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
