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

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

type Command struct {
	connect.NoRedis

	Port  port    `default:"8000" help:"TCP port to listen on; 0 picks a free one."`
	Host  string  `default:"127.0.0.1" help:"Address to listen on; 0.0.0.0 is all that this machine has."`
	Table *string `placeholder:"NAME" help:"Create sluice's table under this name at start, as rate_limits. Without it there is none: SLUICE_TABLE is not read."`
}

// port is a TCP port.
type port uint16

// Decode takes the next word for the port, whatever it looks like: -1 is a wrong port and no flag.
func (p *port) Decode(ctx *kong.DecodeContext) error {
	n, err := strconv.ParseUint(ctx.Scan.Pop().String(), 10, 16)
	if err != nil {
		return errors.New("want 0 to 65535")
	}
	*p = port(n)
	return nil
}

// Run serves until ctx ends, which is no failure.
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
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // nothing outlives it that would be worth a wait
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

// check refuses what would be taken for something else: no table, every address, a name of AWS's.
func (c Command) check() error {
	switch {
	case c.Host == "":
		return program.Usagef("--host is empty")
	case c.Table == nil:
		return nil
	case *c.Table == "":
		return program.Usagef("--table is empty")
	case strings.HasPrefix(*c.Table, "arn:"):
		return program.Usagef("table %q: dev takes a name such as rate_limits, not an ARN", *c.Table)
	}
	if _, ok := operator.TableName(*c.Table); !ok {
		return program.Usagef("table %q: want 3 to 255 letters, digits, '_', '.' and '-'", *c.Table)
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
		return nil, fmt.Errorf("port %d is taken: choose another with --port, or let --port 0 pick one", c.Port)
	case unknown, malformed, errors.Is(err, syscall.EADDRNOTAVAIL):
		return nil, fmt.Errorf("--host %s is no address of this machine: leave it out, or take 0.0.0.0 for all addresses", c.Host)
	}
	return listener, err
}

// announce prints where the engine is, and what makes SDKs and tools use it.
func (c Command) announce(p program.Env, addr net.Addr) {
	url, everywhere := endpoint(addr)
	p.Say("DynamoDB in memory at %s until Ctrl-C; its tables end with it\n", url)
	if everywhere {
		p.Say("on all addresses: other machines and containers use this host's name in place of 127.0.0.1\n")
	}
	if c.Table != nil {
		p.Say("table %s is there\n", *c.Table)
	}
	p.Say(`for SDKs, the AWS command line and sluice:
  export AWS_ENDPOINT_URL_DYNAMODB=%[1]s AWS_ENDPOINT_URL_DYNAMODB_STREAMS=%[1]s
  export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=dev
`, url)
}

// endpoint is the URL by which this machine reaches addr, which may be everywhere: all of this machine's addresses.
func endpoint(addr net.Addr) (url string, everywhere bool) {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port)), true
	}
	return "http://" + addr.String(), false
}
