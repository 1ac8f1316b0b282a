package migrate

import (
	"fmt"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/migrate"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// fillIn adds to the report the command lines that only this command knows.
func (c Command) fillIn(s *schemafile.Schema, r *migrate.Report) {
	for i := range r.Differing {
		d := &r.Differing[i]
		d.Override = c.override(s, d)
	}
}

// override returns the command line that gives a bucket the limits of its items, or why there is none.
func (c Command) override(s *schemafile.Schema, d *migrate.Difference) string {
	l, err := s.Scope(d.Entity, d.Resource)
	if err == nil {
		err = l.Writable()
	}
	if err != nil {
		return err.Error()
	}
	words := []string{"sluice", "override", "set", d.Entity, d.Resource}
	for _, n := range d.Limits {
		i, err := l.Limit(n.Limit)
		if err != nil {
			return err.Error()
		}
		text, wrong := l.Restate(i, bucket.Limit(n.Item))
		if wrong != "" {
			return fmt.Sprintf("none for %s on %s: limit %s: %s", term.Quote(d.Entity), d.Resource, n.Limit, wrong)
		}
		words = append(words, text)
	}
	return quoted(append(words, c.given()...))
}

// given returns the flags that lead other commands to the same table and schema.
func (c Command) given() (flags []string) {
	for _, f := range []struct{ name, value, usual string }{
		{"endpoint", secrets.URL(c.Endpoint), ""}, {"region", c.Region, ""},
		{"table", c.Table, "rate_limits"}, {"file", c.File, schemafile.DefaultFile},
	} {
		if f.value != f.usual {
			flags = append(flags, "--"+f.name, f.value)
		}
	}
	return flags
}

// quoted returns a command line for a POSIX shell.
func quoted(words []string) string {
	all := make([]string, len(words))
	for i, word := range words {
		all[i] = term.Argument(word)
	}
	return strings.Join(all, " ")
}
