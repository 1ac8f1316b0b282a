package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// where is where buckets, overrides and entities are: in a table, or in a Redis.
type where struct {
	connection

	Redis  *string `env:"SLUICE_REDIS_URL" placeholder:"URL" help:"Redis's URL, as go-redis reads it, instead of a table: redis://:password@host:6379/0, rediss://..., unix://...; ?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster."`
	Prefix *string `env:"SLUICE_REDIS_PREFIX" placeholder:"sluice:" help:"With --redis: what the store's keys start with."`
}

// AfterApply refuses to choose between a table and a Redis. What is on the command line beats the environment.
func (w *where) AfterApply(command *kong.Context) error {
	if err := w.connection.AfterApply(command); err != nil {
		return err
	}
	given := map[string]bool{}
	table := ""
	for _, at := range command.Path {
		if at.Flag == nil {
			continue
		}
		switch name := at.Flag.Name; name {
		case "endpoint", "region", "table":
			table = "--" + name
			fallthrough
		case "redis", "prefix":
			given[name] = true
		}
	}
	switch {
	case given["redis"] && *w.Redis == "":
		return errors.New("--redis is empty: pass a URL, or leave the flag out for a table of DynamoDB")
	case given["redis"] && table != "":
		return fmt.Errorf("--redis is a Redis, %s is about a table of DynamoDB: pass one", table)
	case !given["redis"] && (table != "" || w.Redis == nil || *w.Redis == ""):
		w.Redis = nil
	case !given["redis"] && os.Getenv("SLUICE_TABLE") != "":
		return errors.New("SLUICE_REDIS_URL and SLUICE_TABLE are both set: pass --redis or --table")
	}
	switch {
	case given["prefix"] && w.Redis == nil:
		return errors.New("--prefix is about keys in Redis: pass --redis too")
	case given["prefix"] && *w.Prefix == "":
		return errors.New("--prefix is empty: pass one, or leave the flag out for " + redisstore.DefaultPrefix)
	}
	return nil
}

// rooted are the flags of commands about the bucket of one entity.
type rooted struct {
	where
	schemaFile

	Root *string `placeholder:"ENTITY" help:"With --redis: the last of those that its calls charge, as in project-7, which is part of its bucket's key."`
}

// rootHelp says how a command finds a bucket in Redis.
const rootHelp = "With --redis, the numbers are those of limits.yaml and of overrides. A bucket's key has the root of its chain: the last entity " +
	"that a call on it charges. That is --root; else the entity itself, where no kind above it is charged; else where the stored parents " +
	"lead, if there is a bucket; else all of Redis is searched, by SCAN, and each bucket found is meant: an entity whose parent " +
	"has changed may have several.\n\n"

// root returns the root that was given, or nothing.
func (c rooted) root() (string, error) {
	switch {
	case c.Root == nil:
		return "", nil
	case c.Redis == nil:
		return "", usageError{"--root is about keys in Redis: pass --redis too"}
	}
	return *c.Root, checkEntity(*c.Root)
}

// store is what commands ask of the place that they are pointed at. Its errors are for people.
type store interface {
	// inspect returns the buckets of entity on resource: none where nothing is stored, several where it was charged under
	// several roots. root is that of the one that is meant, or empty.
	inspect(ctx context.Context, entity, resource, root string) ([]found, error)
	// list lists all buckets of resource, or those of a kind.
	list(ctx context.Context, resource, kind string) iter.Seq2[page, error]
	// fill fills the named limits of b, or all. It returns the bucket as it is then, nil where it is gone, and which it filled.
	fill(ctx context.Context, b found, limits []string) (after *found, filled []string, err error)
	overrides() runtime.OverrideStore
	members() runtime.MemberStore
	// explain says in an error of overrides or members what to do, if the error does not.
	explain(err error) error
	// place says where that is, and alternatives where else something could be that is not there.
	place() (at, alternatives string)
	// describe says in a board where it is from.
	describe(b *board)
	close()
}

// found is a bucket as it is now.
type found struct {
	entity, resource string
	root             string // where its chain ends; empty where the store does not tell buckets apart by that
	limits           []limitNow
	pending          bool  // still in per-limit items
	revision         int64 // of the numbers that it has
	overrides        int64 // the sum of the versions of the overrides that it has
}

// limitNow is a limit of a bucket as it is now.
type limitNow struct {
	name string
	bucket.Limit
	available int64 // millitokens
	fullIn    time.Duration
}

// nowOf returns the limit of a balance that was refilled until refilled, at now: both in ms.
func nowOf(name string, b bucket.Balance, refilled, now int64) limitNow {
	return limitNow{name, b.Limit, bucket.Available(b, refilled, now), bucket.RetryAfter(b, refilled, now, b.Burst)}
}

// page is what a store has listed since the page before.
type page struct {
	buckets   []found
	malformed []error
	others    int      // per-limit items, which were not read
	strange   []string // what is stored that the schema does not have, as `limit rpm`
	units     float64
}

// title names b, one of all.
func (b found) title(all []found) string {
	text := b.entity + " on " + b.resource
	if len(all) > 1 {
		text += " under " + b.root
	}
	return text
}

// at returns the limit of that name, if b has it.
func (b found) at(name string) *limitNow {
	for i := range b.limits {
		if b.limits[i].name == name {
			return &b.limits[i]
		}
	}
	return nil
}

// open returns the store that the flags say. file is the schema, which a Redis does not have the numbers without.
func (w *where) open(ctx context.Context, p Program, file schemaFile) (store, error) {
	if w.Redis == nil {
		return newTableStore(ctx, w.connection, p)
	}
	prefix := ""
	if w.Prefix != nil {
		prefix = *w.Prefix
	}
	return newRedisStore(ctx, *w.Redis, prefix, file)
}

// onTable is the connection of a command that is about DynamoDB alone.
type onTable struct {
	connection
	notRedis
}

// AfterApply checks both.
func (c onTable) AfterApply(command *kong.Context) error {
	if err := c.notRedis.AfterApply(command); err != nil {
		return err
	}
	return c.connection.AfterApply(command)
}

// notRedis is for commands that have nothing to do with Redis, to say so.
type notRedis struct {
	Redis *string `hidden:"" placeholder:"URL"`
}

// AfterApply refuses the flag.
func (c notRedis) AfterApply(command *kong.Context) error {
	if c.Redis == nil {
		return nil
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(command.Selected().FullPath(), "sluice "), " ")
	why := map[string]string{
		"table":     "Redis needs no table, keys come with the calls that need them",
		"infra":     "Redis needs no table, keys come with the calls that need them",
		"aggregate": "Redis has no stream of what was consumed",
		"usage":     "Redis has no stream of what was consumed",
		"migrate":   "Redis has no per-limit items",
		"dev":       "for Redis, run redis-server",
	}[name]
	return fmt.Errorf("%s is about DynamoDB alone, and takes no --redis: %s", name, why)
}
