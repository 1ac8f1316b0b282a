// Command sluice-serve serves the limits of limits.yaml by HTTP, to programs in any language. They share
// buckets with Go services that use the same table.
//
//	sluice-serve --file limits.yaml --table rate_limits
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sluice-go/sluice/serve/internal/process"
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // it logs to stderr what is in our errors too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the program at once
	reload := make(chan os.Signal, 1)
	signal.Notify(reload, syscall.SIGHUP)
	p := process.Process{Stdout: os.Stdout, Stderr: os.Stderr, Reload: reload}
	code := p.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
