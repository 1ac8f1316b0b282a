// Package entity is `sluice entity`: it stores and shows the parents of entities.
package entity

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/alecthomas/kong"
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice entity`.
type Command struct {
	Put      putCommand      `cmd:"" help:"Store the parent of an entity, for calls that name only the entity."`
	Show     showCommand     `cmd:"" help:"Show the stored parents of an entity and of its ancestors."`
	Children childrenCommand `cmd:"" help:"List the stored children of an entity, one per line."`
	Calendar calendarCommand `cmd:"" help:"Store when an entity's billing began, for windows of its own."`
	Delete   deleteCommand   `cmd:"" help:"Delete a stored entity; its buckets and overrides stay."`
	Erase    eraseCommand    `cmd:"" help:"Delete all that is stored of an entity."`
}

// argument are the flags and the argument that name an entity of a store.
type argument struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Entity string `arg:"" type:"entity" help:"${entity}"`
}

// entities is the store of entities and the schema that describes them.
type entities struct {
	*schemafile.Schema
	store.MemberStore

	store bucketstore.Store
}

// entities reads the schema, checks the entity against it, and opens the store. The caller closes the store.
// An entity with characters that no call may use is fine: it may be stored.
func (c argument) entities(ctx context.Context, p program.Env) (entities, error) {
	return c.opened(c.isEntity, func() (bucketstore.Store, error) { return c.Open(ctx, p.Now, c.Flag) })
}

// toWrite is entities for a command that writes. check is what it requires of the schema.
func (c argument) toWrite(
	ctx context.Context, p program.Env, check func(*schemafile.Schema) error,
) (entities, error) {
	return c.opened(check, func() (bucketstore.Store, error) { return c.OpenToWrite(ctx, p.Now, c.Flag, "") })
}

// isEntity returns a usage error if the argument is no entity of the schema.
func (c argument) isEntity(s *schemafile.Schema) error {
	_, err := s.Entity(c.Entity)
	return err
}

// opened reads the schema, checks the arguments against it, and opens the store.
func (c argument) opened(
	check func(*schemafile.Schema) error, open func() (bucketstore.Store, error),
) (entities, error) {
	s, err := c.Read()
	if err != nil {
		return entities{}, err
	}
	if err := check(s); err != nil {
		return entities{}, err
	}
	at, err := open()
	if err != nil {
		return entities{}, err
	}
	return entities{s, at.Members(), at}, nil
}

type putCommand struct {
	argument

	Parent    *string `placeholder:"ENTITY" type:"entity" help:"${parent}"`
	NoCascade bool    `help:"${no_cascade}"`
}

// Help is an example.
func (putCommand) Help() string { return "Example: sluice entity put user-123 --parent project-7" }

// Run stores the entity and prints its chain. Without --parent it keeps the stored parent: without a
// parent, look-ups would fail or stop charging it.
func (c putCommand) Run(ctx context.Context, p program.Env) error {
	m := store.Member{Entity: c.Entity, Cascade: !c.NoCascade}
	if c.Parent != nil {
		if m.Parent = *c.Parent; m.Parent == "" { // an unset variable must not remove the parent
			return program.Usagef("--parent is empty: pass an entity such as project-7, or leave the flag out to " +
				"keep the stored parent")
		}
	}
	e, err := c.toWrite(ctx, p, func(s *schemafile.Schema) error {
		if err := m.Check(s.Kinds); err != nil {
			return program.Usagef("%v", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	defer e.store.Close()
	before, found, err := e.Get(ctx, m.Entity)
	if err != nil {
		return e.store.Explain(err)
	}
	before.Since = time.Time{} // a put leaves it alone
	if m.Parent == "" {
		m.Parent = before.Parent
		if err := m.Check(e.Kinds); err != nil {
			return fmt.Errorf("%w; it is the stored parent of %s: pass --parent", err, term.Quote(m.Entity))
		}
	}
	if needing := e.Needing(e.KindOf(m.Entity)); m.Parent == "" && m.Cascade && len(needing) > 0 {
		return program.Usagef("--parent is missing, and look-ups for %s need it: run `%s`, or pass --no-cascade",
			strings.Join(needing, ", "), putLine(e.Schema, m.Entity))
	}
	if err := e.Put(ctx, m); err != nil {
		return e.store.Explain(err)
	}
	switch {
	case !found:
		p.Say("stored %s\n", term.Quote(m.Entity))
	case before == m:
		p.Say("stored %s, unchanged\n", term.Quote(m.Entity))
	case c.Parent == nil && m.Parent != "":
		p.Say("stored %s, instead of cascade %s; its parent %s is kept\n", term.Quote(m.Entity),
			yes(before.Cascade), term.Quote(m.Parent))
	default:
		p.Say("stored %s, instead of parent %s, cascade %s\n", term.Quote(m.Entity),
			term.Quote(dash(before.Parent)), yes(before.Cascade))
	}
	if _, err := e.show(ctx, p, m.Entity); err != nil {
		return err
	}
	p.Say("%s\n", bucketstore.TakenUp())
	return nil
}

type showCommand struct {
	argument

	JSON bool `name:"json" help:"Print a JSON object per entity on a line."`
}

// Help is an example.
func (showCommand) Help() string { return "Example: sluice entity show user-123" }

// Run prints the entity and its ancestors, as far as they are stored.
func (c showCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.entities(ctx, p)
	if err != nil {
		return err
	}
	defer e.store.Close()
	show := e.show
	if c.JSON {
		show = e.showJSON
	}
	found, err := show(ctx, p, c.Entity)
	if err == nil && !found {
		err = fmt.Errorf("%s is not stored: run `%s`", term.Quote(c.Entity), putLine(e.Schema, c.Entity))
	}
	return err
}

type childrenCommand struct {
	argument

	JSON bool `name:"json" help:"Print a JSON object per child on a line."`
}

// Help is an example.
func (childrenCommand) Help() string { return "Example: sluice entity children project-7 | wc -l" }

// Run prints each child as soon as it is read.
func (c childrenCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.entities(ctx, p)
	if err != nil {
		return err
	}
	defer e.store.Close()
	none := true
	for child, err := range e.Children(ctx, c.Entity) {
		if err != nil {
			return e.store.Explain(err)
		}
		none = false
		if !c.JSON {
			p.Say("%s\n", term.Quote(child))
			continue
		}
		if err := p.JSONLine(map[string]string{"entity": child, "parent": c.Entity}); err != nil {
			return err
		}
	}
	if none {
		p.Note("no stored entity has the parent %s\n", term.Quote(c.Entity))
	}
	return nil
}

type deleteCommand struct {
	argument

	Force bool `help:"Delete it even if it has children, whose look-ups then fail."`
}

// Help is an example.
func (deleteCommand) Help() string { return "Example: sluice entity delete user-123" }

// named is the number of children that a refusal names.
const named = 3

// Run deletes the entity unless it has stored children.
func (c deleteCommand) Run(ctx context.Context, p program.Env) error {
	e, err := c.toWrite(ctx, p, c.isEntity)
	if err != nil {
		return err
	}
	defer e.store.Close()
	before, found, err := e.Get(ctx, c.Entity)
	if err != nil {
		return e.store.Explain(err)
	}
	if !found {
		p.Say("%s is not stored: nothing to delete\n", term.Quote(c.Entity))
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
	p.Say("deleted %s\n%s\n", term.Quote(c.Entity), bucketstore.TakenUp())
	if !before.Since.IsZero() {
		p.Say("its calendar stays: `sluice entity erase %s` deletes it too\n", term.Argument(c.Entity))
	}
	if divided := e.dividing(c.Entity); len(divided) > 0 {
		p.Say("its quotas of %s stay: regional sync manages them and reclaims unused ones\n",
			strings.Join(divided, ", "))
	}
	return nil
}

// dividing returns the resources whose limits for this entity are divided among regions.
func (e entities) dividing(entity string) (names []string) {
	for _, spec := range e.Specs {
		if spec.Regions != nil && spec.Kinds[e.KindOf(entity)].Limits != nil {
			names = append(names, spec.Resource)
		}
	}
	return names
}

// childless returns an error if entity has children.
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
		children = append(children, term.Quote(child))
	}
	if len(children) == 0 {
		return nil
	}
	return fmt.Errorf("%s is the parent of %s, whose look-ups would fail: nothing was deleted; store another "+
		"parent for them first, or pass --force", term.Quote(entity), strings.Join(children, ", "))
}

// putLine returns the command line that stores entity.
func putLine(s *schemafile.Schema, entity string) string {
	command := "sluice entity put " + term.Argument(entity)
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

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"parent":     "Its parent as it is stored, such as project-7. The default is the stored parent.",
		"since":      "When its billing began: the local time in --zone, such as 2026-01-31T09:00.",
		"no_cascade": "Calls that look it up charge only its own bucket, even if the resource cascades.",
	}
}
