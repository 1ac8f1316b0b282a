package entity

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/store"
)

// shown is an entity, as far as it is stored, and why look-ups fail at it.
type shown struct {
	Entity  string `json:"entity"`
	Parent  string `json:"parent,omitempty"`
	Cascade bool   `json:"cascade"`
	Stored  bool   `json:"stored"`
	Problem string `json:"problem,omitempty"`
	// Since is the start of its billing in its zone, Zone the zone's name. Both are left out if none is stored.
	Since time.Time `json:"since,omitzero"`
	Zone  string    `json:"zone,omitempty"`
}

// since returns s with the start of billing of m.
func (s shown) since(m store.Member) shown {
	if s.Since = m.Since; !m.Since.IsZero() {
		s.Zone = m.Since.Location().String()
	}
	return s
}

// chain reads entity and its ancestors as far as look-ups go. It returns nothing if nothing is stored of
// entity.
func (e entities) chain(ctx context.Context, entity string) (chain []shown, err error) {
	for entity != "" {
		m, stored, err := e.Get(ctx, entity)
		switch {
		case err != nil:
			return nil, e.store.Explain(err)
		case stored:
			next := shown{Entity: entity, Parent: m.Parent, Cascade: m.Cascade, Stored: true, Problem: e.broken(m)}
			chain = append(chain, next.since(m))
		case len(chain) == 0 && m.Since.IsZero():
			return nil, nil
		default:
			chain = append(chain, shown{Entity: entity, Problem: e.missing(entity, "not stored")}.since(m))
		}
		entity = m.Parent
		if !m.Cascade || e.broken(m) != "" {
			break
		}
	}
	return chain, nil
}

// show prints entity and its ancestors. It prints nothing and returns false if entity is not stored.
func (e entities) show(ctx context.Context, p program.Env, entity string) (found bool, err error) {
	chain, err := e.chain(ctx, entity)
	if err != nil || len(chain) == 0 {
		return false, err
	}
	rows := [][]string{{"ENTITY", "PARENT", "CASCADE"}}
	dated := slices.ContainsFunc(chain, func(s shown) bool { return !s.Since.IsZero() })
	if dated {
		rows[0] = append(rows[0], "BILLED SINCE")
	}
	for _, s := range chain {
		row, problem := []string{s.Entity, "-", "-"}, cmp.Or(s.Problem, "not stored (not needed)")
		if s.Stored {
			row, problem = []string{s.Entity, dash(s.Parent), yes(s.Cascade)}, s.Problem
		}
		if dated {
			row = append(row, billed(s.Since))
		}
		rows = append(rows, append(row, problem))
	}
	return true, texttable.Write(p.Stdout, "  ", "lllll"[:len(rows[0])+1], rows)
}

// showJSON is show in JSON.
func (e entities) showJSON(ctx context.Context, p program.Env, entity string) (found bool, err error) {
	chain, err := e.chain(ctx, entity)
	for _, s := range chain {
		if err == nil {
			err = p.JSONLine(s)
		}
	}
	return len(chain) > 0, err
}

// broken says why look-ups fail at m, or returns an empty string.
func (e entities) broken(m store.Member) string {
	switch err := m.Check(e.Kinds); {
	case err != nil:
		return program.Text(err)
	case m.Cascade && m.Parent == "":
		return e.missing(m.Entity, "no parent")
	}
	return ""
}

// missing says that look-ups miss the parent of entity, and why. It returns an empty string if no resource
// needs the parent.
func (e entities) missing(entity, why string) string {
	if needing := e.Needing(e.KindOf(entity)); len(needing) > 0 {
		return fmt.Sprintf("%s: look-ups for %s fail, run `%s`", why, strings.Join(needing, ", "),
			putLine(e.Schema, entity))
	}
	return ""
}
