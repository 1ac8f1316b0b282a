// Command sluice generates typed Go from limits.yaml and, beside it, EXPRESSIONS.md for reviewers: costs,
// sizes and keys of the limits. It says what a change of limits.yaml breaks, creates and checks the table,
// prints templates and policies for it, shows and changes what lies in it or in a Redis, adds up what was
// consumed, shares limits out between regions, carries items of another layout over, drives limits with calls
// to measure them, and serves a DynamoDB in memory to develop with.
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
