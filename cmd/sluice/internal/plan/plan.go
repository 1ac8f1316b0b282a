// Package plan is `sluice plan`: it puts entities on the plans of limits.yaml.
package plan

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice plan`.
type Command struct {
	Show showCommand `cmd:"" help:"Show the plan of an entity."`
	Set  setCommand  `cmd:"" help:"Put an entity on a plan, or take it off its plan."`
	Move moveCommand `cmd:"" help:"Put all entities of one plan on another one."`
}

// none stands for no plan.
const none = "none"

// plans are the plans of a schema, which are the same for all its resources.
type plans struct {
	*schemafile.Schema
	*store.Plans
}

// read reads the schema. Without plans, it returns a usage error.
func read(f schemafile.Flag) (plans, error) {
	s, err := f.Read()
	if err != nil {
		return plans{}, err
	}
	for _, spec := range s.Specs {
		if spec.Plans != nil {
			return plans{s, spec.Plans}, nil
		}
	}
	return plans{}, program.Usagef("no resource of %s has plans: add them, or pass --file for another schema",
		s.File)
}

// kind returns the kind whose entities are put on plans.
func (p plans) kind() *store.Kind { return &p.Kinds[p.Kind] }

// parse returns the plan of that name, "" for none.
func (p plans) parse(name string) (string, error) {
	switch {
	case slices.Contains(p.Names, name):
		return name, nil
	case name == none:
		return "", nil
	}
	return "", program.Usagef("%s has no plan %s (%s stands for no plan): %s", p.File, term.Quote(name), none,
		gen.Cure(name, p.Names))
}

// named returns a plan as commands print it.
func (p plans) named(plan string) string {
	switch {
	case plan == "":
		return "no plan"
	case !slices.Contains(p.Names, plan):
		return "plan " + term.Quote(plan) + " (not in " + p.File + ")"
	}
	return "plan " + plan
}

type showCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag

	Entity string `arg:"" type:"entity" help:"${entity}"`
	JSON   bool   `name:"json" help:"Print a JSON object."`
}

// Help describes the command.
func (showCommand) Help() string {
	return "An entity below those that are put on plans has the plan of its ancestor. Stored parents say " +
		"which entity that is.\n\n" +
		"Example: sluice plan show org-7"
}

// shownJSON is a plan in JSON.
type shownJSON struct {
	Entity  string    `json:"entity"`
	Follows string    `json:"follows,omitempty"` // whose plan it has, if that is another entity
	Plan    string    `json:"plan"`              // empty for none
	Known   bool      `json:"known"`             // limits.yaml has it
	Since   time.Time `json:"since,omitzero"`
	// Orphan is the entity at or above Entity whose parent is not stored. Only calls say whose plan it has.
	Orphan string `json:"orphan,omitempty"`
}

// Run prints the plan.
func (c showCommand) Run(ctx context.Context, p program.Env) error {
	s, err := read(c.Flag)
	if err != nil {
		return err
	}
	kind, err := s.Entity(c.Entity)
	if err != nil {
		return err
	}
	if kind != s.Kind && !slices.Contains(schemafile.Ancestors(s.Kinds, kind), s.Kind) {
		return s.wrongKind(c.Entity)
	}
	at, err := c.Open(ctx, p.Now, c.Flag)
	if err != nil {
		return err
	}
	defer at.Close()
	m, err := bucketstore.Follow(ctx, at.Members(), s.Kinds, c.Entity, kind, s.Kind)
	if err != nil {
		return at.Explain(err)
	}
	of := m.Of
	switch {
	case m.Found:
	case c.JSON:
		return p.JSONLine(shownJSON{Entity: c.Entity, Orphan: of})
	default:
		p.Say("%s: no parent of %s is stored, so calls say whose plan it has\n", term.Quote(c.Entity),
			term.Quote(of))
		return nil
	}
	out := shownJSON{Entity: c.Entity, Plan: m.Plan, Known: m.Plan == "" || slices.Contains(s.Names, m.Plan)}
	if m.PlanVersion != 0 {
		out.Since = time.UnixMilli(m.PlanVersion).UTC()
	}
	text := term.Quote(c.Entity)
	if of != c.Entity {
		out.Follows = of
		text += " follows " + term.Quote(of) + ", which"
	}
	if c.JSON {
		return p.JSONLine(out)
	}
	text += " is on " + s.named(m.Plan)
	if !out.Since.IsZero() {
		text += ", since " + format.UTC(out.Since)
	}
	p.Say("%s\n", text)
	return nil
}

// wrongKind returns the usage error for an entity that is not put on plans.
func (p plans) wrongKind(entity string) error {
	return program.Usagef("%s cannot be on a plan: entities of kind %s are, such as %s7", term.Quote(entity),
		p.kind().Name, p.kind().Prefix)
}

type setCommand struct {
	bucketstore.TableOrRedis
	schemafile.Flag
	bucketstore.Reason

	Entity string `arg:"" type:"entity" help:"${entity}"`
	Plan   string `arg:"" help:"Plan of limits.yaml, or none."`
}

// Help is an example.
func (setCommand) Help() string {
	return "Usage of open windows stays; the difference in capacity is available at once. The plan and its " +
		"record, which `sluice audit` prints, are one transaction: 4 write units.\n\n" +
		"Example: sluice plan set org-7 pro --reason 'invoice 2026-117'"
}

// Run puts the entity on the plan, and prints the plan before and after.
func (c setCommand) Run(ctx context.Context, p program.Env) error {
	s, err := read(c.Flag)
	if err != nil {
		return err
	}
	kind, err := s.Entity(c.Entity)
	if err != nil {
		return err
	}
	if kind != s.Kind {
		return s.wrongKind(c.Entity)
	}
	if err := (store.Member{Entity: c.Entity}).Check(s.Kinds); err != nil {
		return program.Usagef("%v", err)
	}
	plan, err := s.parse(c.Plan)
	if err != nil {
		return err
	}
	at, err := c.OpenToWrite(ctx, p.Now, c.Flag, "")
	if err != nil {
		return err
	}
	defer at.Close()
	if ctx, err = c.Recorded(ctx, at); err != nil {
		return err
	}
	before, _, err := at.Members().Get(ctx, c.Entity)
	if err == nil && before.Plan == plan {
		p.Say("%s: nothing to change, it is on %s\n", term.Quote(c.Entity), s.named(plan))
		return nil
	}
	if err == nil {
		err = at.Members().SetPlan(ctx, c.Entity, plan, &before.Plan)
	}
	if _, conflict := errors.AsType[*store.ConflictError](err); conflict {
		return errors.New("the plan of " + term.Quote(c.Entity) +
			" has been changed by another write: nothing was written; run `sluice plan show " +
			term.Argument(c.Entity) + "`")
	}
	if err != nil {
		return at.Explain(err)
	}
	p.Say("%s: now on %s, was on %s\n%s\n", term.Quote(c.Entity), s.named(plan), s.named(before.Plan),
		bucketstore.TakenUp())
	return nil
}
