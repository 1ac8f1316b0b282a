package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/internal/texttable"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

type resetCommand struct {
	connection

	Entity   string   `arg:"" help:"Entity as stored: its kind, '-', its id, as in user-123."`
	Resource string   `arg:"" help:"Name of the resource in limits.yaml, as in gpt-4."`
	Limit    []string `placeholder:"LIMIT" sep:"none" help:"Fill this limit alone; may be repeated. The default is all."`
}

// Help is an example.
func (resetCommand) Help() string {
	return "The bucket is as full afterwards as one that was never used: debt is forgiven. It is filled up to the burst that it has: " +
		"if an override has just been raised, wait until override explain says that the bucket has the limits in force. " +
		"Without a bucket, the exit code is 1.\n\n" +
		"Example: sluice reset user-123 gpt-4 --limit rpm"
}

// Run fills the bucket up to its burst and prints its limits before and after. It needs no schema: the item has the
// numbers.
func (c resetCommand) Run(ctx context.Context, p Program) error {
	if err := checkArguments(c.Entity, c.Resource); err != nil {
		return err
	}
	if slices.Contains(c.Limit, "") { // a variable that is not set must not fill all limits
		return usageError{"--limit is empty: want a limit's name, as in rpm; without --limit all are filled"}
	}
	client, err := c.client(ctx)
	if err != nil {
		return err
	}
	before, err := dynamo.Inspect(ctx, client, c.Table, c.Entity, c.Resource)
	if err != nil {
		return explain(client, err)
	}
	filled, err := dynamo.Reset(ctx, client, c.Table, c.Entity, c.Resource, c.Limit...)
	if err != nil {
		return explain(client, err)
	}
	after, err := dynamo.Inspect(ctx, client, c.Table, c.Entity, c.Resource)
	if err != nil {
		return explain(client, err)
	}
	if before == nil || after == nil || len(filled) == 0 { // somebody expects that it did something
		items, err := c.inItems(ctx, p, client, c.Entity, c.Resource)
		switch {
		case err != nil:
			return err
		case items != nil:
			return fmt.Errorf("%s on %s: %s: run this again then", c.Entity, c.Resource, becomesBucket)
		}
		return errors.New(notStored(c.Entity, c.Resource))
	}
	p.say("%s on %s: filled\n", c.Entity, c.Resource)
	if err := texttable.Write(p.Stdout, "  ", "lrrr", filledRows(before, after, filled, p.Now().UnixMilli())); err != nil {
		return err
	}
	kind, _, _ := strings.Cut(c.Entity, "-")
	stored, err := dynamo.NewOverrides(client, c.Table, p.Now).Get(ctx, &runtime.Spec{Resource: c.Resource}, c.Entity, kind)
	if err != nil {
		return explain(client, err)
	}
	if _, known := dynamo.SplitVersion(after.Version); versions(stored) > known {
		p.say("an override has been changed that the bucket has not taken up: run this again once "+
			"`sluice override explain %s %s` says that it has the limits in force\n", c.Entity, c.Resource)
	}
	return nil
}

// filledRows returns the rows of the filled limits at now (ms). After a reset others may have taken from them again.
func filledRows(before, after *bucket.Image, filled []string, now int64) [][]string {
	rows := [][]string{{"LIMIT", "BEFORE", "AFTER", "BURST"}}
	available := func(img *bucket.Image, limit string) (left, burst string) {
		i := slices.IndexFunc(img.Extra, func(b bucket.Named) bool { return b.Name == limit })
		if i < 0 { // added or removed by a reshape meanwhile
			return "-", "-"
		}
		return tokens(bucket.Available(img.Extra[i].Balance, img.Refilled, now)), tokens(img.Extra[i].Burst)
	}
	for _, limit := range filled {
		was, _ := available(before, limit)
		is, burst := available(after, limit)
		rows = append(rows, []string{limit, was, is, burst})
	}
	return rows
}
