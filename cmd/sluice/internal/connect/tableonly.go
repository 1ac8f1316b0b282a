package connect

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"
)

// TableOnly are the flags of a command that works on a DynamoDB table and not on Redis.
type TableOnly struct {
	Connection
	NoRedis
}

// AfterApply checks the flags.
func (c TableOnly) AfterApply(command *kong.Context) error {
	if err := c.NoRedis.AfterApply(command); err != nil {
		return err
	}
	return c.Connection.AfterApply(command)
}

// NoRedis refuses --redis for commands that do not work on Redis, and says why.
type NoRedis struct {
	Redis *string `hidden:"" placeholder:"URL"`
}

// AfterApply returns an error if --redis is given.
func (c NoRedis) AfterApply(command *kong.Context) error {
	if c.Redis == nil {
		return nil
	}
	return fmt.Errorf("%s takes no --redis: %s", Name(command), NoRedisReason(command))
}

// Name returns the name of the command, without those of its subcommands.
func Name(command *kong.Context) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(command.Selected().FullPath(), "sluice "), " ")
	return name
}

// NoRedisReason returns why the command works on DynamoDB alone. The command says so by a method of the same
// name.
func NoRedisReason(command *kong.Context) string {
	for node := command.Selected(); node != nil; node = node.Parent {
		target := reflect.Indirect(node.Target).Addr()
		if c, ok := reflect.TypeAssert[interface{ NoRedisReason() string }](target); ok {
			return c.NoRedisReason()
		}
	}
	return "it works on DynamoDB alone"
}
