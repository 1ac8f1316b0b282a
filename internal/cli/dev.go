package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

type devCommand struct {
	Port  uint16 `default:"8000" help:"TCP port to listen on; 0 picks a free one."`
	Host  string `default:"127.0.0.1" help:"Address to listen on."`
	Table string `placeholder:"NAME" help:"Create sluice's table under this name at start, as rate_limits."`
}

// Run serves until ctx ends, which is no failure.
func (c devCommand) Run(ctx context.Context, p Program) error {
	engine := memdynamo.New()
	if c.Table != "" {
		if !tableName.MatchString(c.Table) {
			return usageError{fmt.Sprintf("table %q: want 3 to 255 letters, digits, '_', '.' and '-'", c.Table)}
		}
		if _, err := dynamo.CreateTable(ctx, engine.Client(), c.Table); err != nil {
			return err
		}
	}
	listener, err := c.listen(ctx)
	if err != nil {
		return err
	}
	c.announce(p, endpoint(listener.Addr()))

	server := http.Server{Handler: engine, ReadHeaderTimeout: 10 * time.Second}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })() // nothing outlives it that would be worth a wait
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve: %w", err)
	}
	return nil
}

func (c devCommand) listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port))))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("port %d is taken: choose another with --port, or let --port 0 pick one", c.Port)
	}
	return listener, err
}

// announce prints where the engine is, and what makes SDKs and tools use it.
func (c devCommand) announce(p Program, url string) {
	p.say("DynamoDB in memory at %s until Ctrl-C; its tables end with it\n", url)
	if c.Table != "" {
		p.say("table %s is there\n", c.Table)
	}
	p.say(`for SDKs, the AWS command line and sluice:
  export AWS_ENDPOINT_URL_DYNAMODB=%[1]s AWS_ENDPOINT_URL_DYNAMODB_STREAMS=%[1]s
  export AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 AWS_ACCESS_KEY_ID=dev AWS_SECRET_ACCESS_KEY=dev
`, url)
}

// endpoint is the URL by which this machine reaches addr.
func endpoint(addr net.Addr) string {
	if tcp, ok := addr.(*net.TCPAddr); ok && tcp.IP.IsUnspecified() {
		return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(tcp.Port))
	}
	return "http://" + addr.String()
}
