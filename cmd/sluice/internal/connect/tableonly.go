package connect

import (
	"fmt"
	"strings"

	"github.com/alecthomas/kong"
)

// onTable is the connection of a command that is about DynamoDB alone.
type TableOnly struct {
	Connection
	NoRedis
}

// AfterApply checks both.
func (c TableOnly) AfterApply(command *kong.Context) error {
	if err := c.NoRedis.AfterApply(command); err != nil {
		return err
	}
	return c.Connection.AfterApply(command)
}

// notRedis is for commands that have nothing to do with Redis, to say so.
type NoRedis struct {
	Redis *string `hidden:"" placeholder:"URL"`
}

// AfterApply refuses the flag.
func (c NoRedis) AfterApply(command *kong.Context) error {
	if c.Redis == nil {
		return nil
	}
	name, why := NotOnRedis(command)
	return fmt.Errorf("%s is about DynamoDB alone, and takes no --redis: %s", name, why)
}

// onDynamoDB returns the command's name, and why there is no such thing on Redis.
func NotOnRedis(command *kong.Context) (name, why string) {
	name, _, _ = strings.Cut(strings.TrimPrefix(command.Selected().FullPath(), "sluice "), " ")
	why = map[string]string{
		"table":     "Redis needs no table, keys come with the calls that need them",
		"infra":     "Redis needs no table, keys come with the calls that need them",
		"aggregate": "Redis has no stream of what was consumed",
		"usage":     "Redis has no stream of what was consumed",
		"region":    "regions share out limits that tables of DynamoDB hold",
		"migrate":   "Redis has no per-limit items",
		"dev":       "for Redis, run redis-server",
	}[name]
	return name, why
}
