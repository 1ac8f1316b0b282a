// Package dev is `sluice dev`: it serves a DynamoDB in memory.
package dev

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Command is `sluice dev`.
type Command struct {
	connect.NoRedis

	Port  port    `default:"8000" help:"TCP port to listen on; 0 picks a free one."`
	Host  string  `default:"127.0.0.1" help:"Address to listen on; 0.0.0.0 is every address."`
	Table *string `placeholder:"NAME" help:"${dev_table}"`
}

// port is a TCP port.
type port uint16

// Decode reads the next argument as a port, even if it looks like a flag, as -1 does.
func (p *port) Decode(ctx *kong.DecodeContext) error {
	n, err := strconv.ParseUint(ctx.Scan.Pop().String(), 10, 16)
	if err != nil {
		return errors.New("a port is 0 to 65535")
	}
	*p = port(n)
	return nil
}

// Run serves until ctx ends.
func (c Command) Run(ctx context.Context, p program.Env) error {
	if err := c.check(); err != nil {
		return err
	}
	engine := memdynamo.New()
	if c.Table != nil {
		if _, err := operator.CreateTable(ctx, engine.Client(), *c.Table); err != nil {
			return err
		}
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	c.announce(p, listener.Addr())

	server := http.Server{Handler: engine, ReadHeaderTimeout: 10 * time.Second}
	// closed at once: the data ends with the process anyway
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// check refuses an empty host or table, and a table name that DynamoDB would not accept.
func (c Command) check() error {
	switch {
	case c.Host == "":
		return program.Usagef("--host is empty: pass an address, or leave the flag out")
	case c.Table == nil:
		return nil
	case *c.Table == "":
		return program.Usagef("--table is empty: pass a name such as rate_limits, or leave the flag out")
	case strings.HasPrefix(*c.Table, "arn:"):
		return program.Usagef("table %q is an ARN: pass a name such as rate_limits", *c.Table)
	}
	if _, ok := operator.TableName(*c.Table); !ok {
		return program.Usagef("table %q is not a table's name: pass 3 to 255 letters, digits, '_', '.' and '-'",
			*c.Table)
	}
	return nil
}

func (c Command) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	_, unknown := errors.AsType[*net.DNSError](err)
	_, malformed := errors.AsType[*net.AddrError](err)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("port %d is in use: choose another with --port, or let --port 0 pick a free one",
			c.Port)
	case unknown, malformed, errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--host %s is not an address of this machine: leave it out, or pass 0.0.0.0 for "+
			"every "+
			"address", c.Host)
	}
	return listener, err
}

// announce prints the engine's URL and the environment variables that make SDKs and tools use it.
func (c Command) announce(p program.Env, addr net.Addr) {
	url, everywhere := endpoint(addr)
	p.Say("DynamoDB in memory at %s until Ctrl-C; its tables end with it\n", url)
	if everywhere {
		p.Say("on every address: other machines and containers use this host's name instead of 127.0.0.1\n")
	}
	if c.Table != nil {
		p.Say("it has table %s\n", *c.Table)
	}
	p.Say(`for SDKs, the AWS command line and sluice:
  export AWS_ENDPOINT_URL_DYNAMODB=%[1]s AWS_ENDPOINT_URL_DYNAMODB_STREAMS=%[1]s
  export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=dev
`, url)
}

// endpoint returns the URL of addr on this machine. everywhere is true if addr is every address of it.
func endpoint(addr net.Addr) (url string, everywhere bool) {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port)), true
	}
	return "http://" + addr.String(), false
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"dev_table": "Create sluice's table under this name, such as rate_limits. Without the flag there is no " +
			"table: SLUICE_TABLE is not read.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "for Redis, run redis-server" }
