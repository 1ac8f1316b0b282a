package bucketstore

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/gen"
)

// where is where buckets, overrides and entities are: in a table, or in a Redis.
type TableOrRedis struct {
	connect.Connection

	Redis  *string `env:"SLUICE_REDIS_URL" placeholder:"URL" help:"Redis's URL, as go-redis reads it, instead of a table: redis://:password@host:6379/0, rediss://..., unix://...; ?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster."`
	Prefix *string `env:"SLUICE_REDIS_PREFIX" placeholder:"sluice:" help:"With --redis: what the store's keys start with."`
}

// AfterApply refuses to choose between a table and a Redis. What is on the command line beats the environment.
func (w *TableOrRedis) AfterApply(command *kong.Context) error {
	if err := w.Connection.AfterApply(command); err != nil {
		return err
	}
	table, redis, prefix := connect.Given(command, "endpoint", "region", "table"), connect.Given(command, "redis"), connect.Given(command, "prefix")
	switch {
	case redis != nil && *w.Redis == "":
		return errors.New("--redis is empty: pass a URL, or leave the flag out for a table of DynamoDB")
	case redis != nil && table != nil:
		return fmt.Errorf("--redis is a Redis, --%s is about a table of DynamoDB: pass one", table.Name)
	case redis == nil && (table != nil || w.Redis == nil || *w.Redis == ""):
		w.Redis = nil
	case redis == nil && os.Getenv("SLUICE_TABLE") != "":
		return errors.New("SLUICE_REDIS_URL and SLUICE_TABLE are both set: pass --redis or --table")
	}
	switch {
	case prefix != nil && w.Redis == nil:
		return errors.New("--prefix is about keys in Redis: pass --redis too")
	case prefix != nil && *w.Prefix == "":
		return errors.New("--prefix is empty: pass what keys start with, or leave the flag out")
	}
	return nil
}

// open returns the store that the flags say, unless the schema says that its limiters have another. file is the schema, which a
// Redis does not have the numbers without.
func (w *TableOrRedis) Open(ctx context.Context, now func() time.Time, file schemafile.Flag) (Store, error) {
	s, err := file.Read()
	if w.Redis == nil {
		return w.openTable(ctx, now, s)
	}
	if err == nil {
		err = s.Lists(gen.StoreRedis, "pass --table for a table of DynamoDB, or --file for another schema")
	}
	if err != nil {
		return nil, err
	}
	prefix := ""
	if w.Prefix != nil {
		prefix = *w.Prefix
	}
	return ConnectRedis(ctx, *w.Redis, prefix, s)
}

// openTable is open for a table. s is the schema, nil where there is none to go by: a table has the numbers, too.
func (w *TableOrRedis) openTable(ctx context.Context, now func() time.Time, s *schemafile.Schema) (Store, error) {
	orRedis := os.Getenv("SLUICE_REDIS_URL") != ""
	if s != nil {
		if err := s.Lists(gen.StoreDynamoDB, "pass --redis for a Redis, or --file for another schema"); err != nil {
			return nil, err
		}
		orRedis = orRedis || slices.Contains(s.Stores, gen.StoreRedis)
	}
	return ConnectTable(ctx, w.Connection, now, orRedis)
}

// rooted are the flags of commands about the bucket of one entity.
type OneBucket struct {
	TableOrRedis
	schemafile.Flag

	Root *string `placeholder:"ENTITY" help:"On a Redis cluster: the last of those that its calls charge, as in project-7, which is part of its bucket's key."`
}

// rootHelp says how a command finds a bucket in Redis.
const RootHelp = "With --redis, the numbers are those of limits.yaml and of overrides. On a cluster, a bucket's key has the root of its chain: the last " +
	"entity that a call on it charges. That is --root; else the entity itself, where no kind above it is charged; else where the stored parents " +
	"lead, if there is a bucket; else all of the cluster is searched, by SCAN, and each bucket found is meant: an entity whose parent " +
	"has changed may have several.\n\n"

// root returns the root that was given, or nothing.
func (c OneBucket) CheckRoot() (string, error) {
	switch {
	case c.Root == nil:
		return "", nil
	case c.Redis == nil:
		return "", program.Usagef("--root is about keys on a Redis cluster: pass --redis too")
	}
	return *c.Root, schemafile.CheckEntity(*c.Root)
}
