// Package reset is `sluice reset`: it fills a bucket up.
package reset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/format"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice reset`.
type Command struct {
	bucketstore.OneBucket

	Entity   string   `arg:"" type:"entity" help:"${entity}"`
	Resource string   `arg:"" help:"${resource}"`
	Limit    []string `placeholder:"LIMIT" sep:"none" help:"Fill this limit only; repeatable. Default: all."`
	Owner    *string  `placeholder:"NAME" help:"Owner of the table. The default is that of limits.yaml."`
	JSON     bool     `name:"json" help:"Print a JSON object per bucket on a line, in millitokens."`
}

// Help describes the command.
func (Command) Help() string {
	return "The bucket is then as full as one that was never used: debt is forgiven. It is filled up to " +
		"the burst that it has now. After raising an override, wait until override explain says that " +
		"the bucket has the limits in force. The exit code is 1 if there is no bucket. Limits with window: " +
		"never stay as they are (sluice grant); in a window that ends, what a grant had added is gone.\n\n" +
		"Slots of limits in flight are free at once, and so is what calls reserved of limits with on_crash: " +
		"release. Leases from before are lost within two minutes. Until then, their calls may run beside " +
		"new ones.\n\n" +
		"A table that records an owner is changed for that owner only. Without limits.yaml, pass --owner.\n\n" +
		bucketstore.RootHelp +
		"Example: sluice reset user-123 gpt-4 --limit rpm"
}

// Run fills the bucket up to its burst and prints the balances before and after.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if err := schemafile.CheckArguments(c.Entity, c.Resource); err != nil {
		return err
	}
	if slices.Contains(c.Limit, "") { // an unset variable must not fill all limits
		return program.Usagef("--limit is empty: pass the name of a limit, such as rpm, or leave the flag out " +
			"to fill all")
	}
	owner := ""
	if c.Owner != nil {
		if owner = *c.Owner; owner == "" {
			return program.Usagef("--owner is empty: pass the owner that the table records, or leave the flag out")
		}
	}
	root, err := c.CheckRoot()
	if err != nil {
		return err
	}
	at, err := c.OpenToWrite(ctx, p.Now, c.Flag, owner)
	if err != nil {
		return err
	}
	defer at.Close()
	all, err := at.Inspect(ctx, c.Entity, c.Resource, root)
	switch {
	case err != nil:
		return err
	case len(all) == 0: // not filling anything is a failure
		return c.nothing()
	case all[0].Pending:
		return fmt.Errorf("%s: %s: run this again after that", all[0].Title(all), bucketstore.BecomesBucket)
	}
	for _, b := range all {
		if err := c.fill(ctx, p, at, b, all); err != nil {
			return err
		}
	}
	return nil
}

// nothing returns the error for a missing bucket. A limit that is not in the schema is the more probable
// mistake, so it comes first.
func (c Command) nothing() error {
	if s, err := c.Read(); err == nil { // with a table, the schema is optional
		if l, err := s.Bucket(c.Entity, c.Resource); err == nil {
			for _, name := range c.Limit {
				if _, err := l.Limit(name); err != nil {
					return err
				}
			}
		}
	}
	return errors.New(bucketstore.NotStored(c.Entity, c.Resource))
}

// fill fills b, one of all.
func (c Command) fill(
	ctx context.Context, p program.Env, at bucketstore.Store, b bucketstore.Bucket, all []bucketstore.Bucket,
) error {
	after, filled, err := at.Fill(ctx, b, c.Limit)
	if err != nil {
		return err
	}
	if after == nil || len(filled) == 0 { // it has expired since the read
		return errors.New(bucketstore.NotStored(c.Entity, c.Resource))
	}
	say := p.Say
	if c.JSON {
		say, err = p.Note, p.JSONLine(filledOf(b, *after, filled))
	} else {
		p.Say("%s: filled\n", b.Title(all))
		err = texttable.Write(p.Stdout, "  ", "lrrr", filledRows(b, *after, filled))
	}
	if err != nil {
		return err
	}
	if lost := bucketstore.LeasesLost(b, filled); lost != "" {
		say("%s\n", lost)
	}
	kind, _, _ := strings.Cut(c.Entity, "-")
	stored, err := at.Overrides().Get(ctx, &store.Spec{Resource: c.Resource}, c.Entity, kind)
	if err != nil {
		return at.Explain(err)
	}
	if bucketstore.Versions(stored) > after.Overrides {
		say("the bucket does not have the latest overrides yet: run this again once "+
			"`sluice override explain %s %s` says that it has the limits in force\n", term.Argument(c.Entity),
			c.Resource)
	}
	return nil
}

// filledJSON is a bucket that was filled. A limit has no balance before or after if the bucket did not have
// it: a reshape adds and removes limits.
type filledJSON struct {
	Entity   string            `json:"entity"`
	Resource string            `json:"resource"`
	Root     string            `json:"root,omitempty"` // in Redis: the last entity of its chain
	Limits   []filledLimitJSON `json:"limits"`         // those that were filled
}

type filledLimitJSON struct {
	Limit  string `json:"limit"`
	Before *int64 `json:"before_milli"`
	After  *int64 `json:"after_milli"`
	Burst  *int64 `json:"burst_milli"`
}

// filledOf returns what JSON has of a reset. Calls may have consumed some again after it.
func filledOf(before, after bucketstore.Bucket, filled []string) filledJSON {
	out := filledJSON{before.Entity, before.Resource, before.Root, []filledLimitJSON{}}
	for _, limit := range filled {
		one := filledLimitJSON{Limit: limit}
		if l := before.At(limit); l != nil {
			one.Before = &l.Available
		}
		if l := after.At(limit); l != nil {
			one.After, one.Burst = &l.Available, &l.Burst
		}
		out.Limits = append(out.Limits, one)
	}
	return out
}

// filledRows returns the rows of the filled limits. Calls may have consumed some again after the reset.
func filledRows(before, after bucketstore.Bucket, filled []string) [][]string {
	rows := [][]string{{"LIMIT", "BEFORE", "AFTER", "BURST"}}
	available := func(b bucketstore.Bucket, limit string) (left, burst string) {
		l := b.At(limit)
		if l == nil { // a reshape has added or removed it since the read
			return "-", "-"
		}
		return format.Number(l.Available, l.Unit), format.Number(l.Burst, l.Unit)
	}
	for _, limit := range filled {
		was, _ := available(before, limit)
		is, burst := available(after, limit)
		rows = append(rows, []string{limit, was, is, burst})
	}
	return rows
}
