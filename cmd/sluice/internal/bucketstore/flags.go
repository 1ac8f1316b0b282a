// Package bucketstore reads and changes buckets, overrides and entities wherever they are: in a DynamoDB
// table, or in a Redis.
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

// FlagHelp has the help texts that are too long for a tag.
var FlagHelp = kong.Vars{
	"redis": "URL of a Redis to use instead of a table: redis://:password@host:6379/0, rediss://..., " +
		"unix://... ?master_name=NAME is for a Sentinel, ?addr=host:port adds nodes of a cluster.",
	"redis_prefix": "With --redis: the prefix of all keys.",
	"entity": "Entity as it is stored, such as user-123. In double quotes it is a Go string, as commands " +
		"print an id with control characters: '\"user-\\x1b\"'.",
	"resource": "Name of the resource in limits.yaml, such as gpt-4; of a template, one name: model/gpt-5.",
	"root": "On a Redis cluster: the last entity that calls on this one charge, such as project-7. " +
		"It is part of the bucket's key.",
}

// TableOrRedis are the flags that name a table or a Redis.
type TableOrRedis struct {
	connect.Connection
	connect.Namespaced

	Redis  *string `env:"SLUICE_REDIS_URL" placeholder:"URL" help:"${redis}"`
	Prefix *string `env:"SLUICE_REDIS_PREFIX" placeholder:"sluice:" help:"${redis_prefix}"`
}

// AfterApply decides between the table and the Redis, or returns an error if both are named. A flag has
// precedence over an environment variable.
func (w *TableOrRedis) AfterApply(command *kong.Context) error {
	if err := w.Connection.AfterApply(command); err != nil {
		return err
	}
	table, redis := connect.Given(command, "endpoint", "region", "table"), connect.Given(command, "redis")
	namespace, prefix := connect.Given(command, "namespace"), connect.Given(command, "prefix")
	switch {
	case redis != nil && namespace != nil:
		return errors.New("--namespace is for DynamoDB tables: with --redis, use --prefix")
	case redis != nil && *w.Redis == "":
		return errors.New("--redis is empty: pass a URL, or leave the flag out for a DynamoDB table")
	case redis != nil && table != nil:
		return fmt.Errorf("--redis names a Redis and --%s a DynamoDB table: pass one of them", table.Name)
	case redis == nil && (table != nil || namespace != nil || w.Redis == nil || *w.Redis == ""):
		w.Redis = nil
	case redis == nil && os.Getenv("SLUICE_TABLE") != "":
		return errors.New("SLUICE_REDIS_URL and SLUICE_TABLE are both set: pass --redis or --table")
	}
	switch {
	case prefix != nil && w.Redis == nil:
		return errors.New("--prefix is for keys in Redis: pass --redis too")
	case prefix != nil && *w.Prefix == "":
		return errors.New("--prefix is empty: pass the prefix of the keys, or leave the flag out")
	}
	return nil
}

// Open connects to the store that the flags name. It returns an error if the schema in file does not list
// that store, or if the schema cannot be read. A Redis needs the schema, since it stores no limits; a table
// does without limits.yaml, where there is none.
func (w *TableOrRedis) Open(ctx context.Context, now func() time.Time, file schemafile.Flag) (Store, error) {
	if w.Redis == nil {
		s, err := file.Optional()
		if err != nil {
			return nil, err
		}
		return w.openTable(ctx, now, s)
	}
	s, err := file.Read()
	if err == nil {
		err = s.Lists(gen.StoreRedis, "pass --table for a DynamoDB table, or --file for another schema")
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

// OpenToWrite is Open for a command that writes, or says what it would write. It returns a *store.SetupError
// if the store records another owner than owner. An empty owner is that of the schema in file. No command
// records an owner: one with a wrong --table would take a new table from the service that it is for.
func (w *TableOrRedis) OpenToWrite(
	ctx context.Context, now func() time.Time, file schemafile.Flag, owner string,
) (Store, error) {
	at, err := w.Open(ctx, now, file)
	if err != nil {
		return nil, err
	}
	if s, err := file.Read(); owner == "" && err == nil {
		owner = s.Owner
	}
	if err := at.CheckOwner(ctx, owner); err != nil {
		at.Close()
		return nil, err
	}
	return at, nil
}

// openTable connects to the table. s is the schema, or nil if there is none: the table has the limits, too.
func (w *TableOrRedis) openTable(
	ctx context.Context, now func() time.Time, s *schemafile.Schema,
) (Store, error) {
	orRedis := os.Getenv("SLUICE_REDIS_URL") != ""
	if s != nil {
		if err := s.Lists(gen.StoreDynamoDB, "pass --redis for a Redis, or --file for another schema"); err != nil {
			return nil, err
		}
		orRedis = orRedis || slices.Contains(s.Stores, gen.StoreRedis)
	}
	at, err := ConnectTable(ctx, w.Connection, w.Namespaced, now, orRedis)
	at.schema = s
	return at, err
}

// OneBucket are the flags of commands that show or change one entity's bucket.
type OneBucket struct {
	TableOrRedis
	schemafile.Flag

	Root *string `placeholder:"ENTITY" type:"entity" help:"${root}"`
}

// RootHelp is the part of the commands' help about finding a bucket in Redis.
const RootHelp = "With --redis, the limits are those of limits.yaml and of overrides. " +
	"On a cluster, the key of a bucket contains its root: the last entity that a call on it charges. " +
	"The root is --root. Without that, it is the entity itself if no kind above it is charged; " +
	"else the stored parents lead to it. " +
	"If no bucket is there, the command searches the whole cluster by SCAN and takes each bucket that " +
	"it finds. An entity whose parent has changed may have several.\n\n"

// CheckRoot returns the value of --root, or an empty string without it.
func (c OneBucket) CheckRoot() (string, error) {
	switch {
	case c.Root == nil:
		return "", nil
	case c.Redis == nil:
		return "", program.Usagef("--root is for keys on a Redis cluster: pass --redis too")
	}
	return *c.Root, schemafile.CheckEntity(*c.Root)
}
