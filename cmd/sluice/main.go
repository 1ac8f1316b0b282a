// Command sluice generates typed Go from limits.yaml and, beside it, EXPRESSIONS.md for reviewers: costs,
// sizes and keys of the limits. Its other commands:
//   - list what a change of limits.yaml breaks
//   - create and check the table, and print templates and policies for it
//   - show and change what a table or a Redis stores
//   - add up what was consumed
//   - divide limits among regions
//   - convert per-limit items into buckets
//   - measure limits under load
//   - serve a DynamoDB in memory for development
//   - serve limits by HTTP
//
// Its exit code is 0 when all is well, 1 when limits.yaml has mistakes, a check found something or a call
// failed, and 2 when the command line is wrong.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
)

func main() {
	redis.SetLogger(&logging.VoidLogger{}) // it logs to stderr what is in our errors too
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the program at once
	program := cli.Program{Stdout: os.Stdout, Stderr: os.Stderr, Now: time.Now}
	code := program.Run(ctx, os.Args[1:])
	stop()
	os.Exit(code)
}
