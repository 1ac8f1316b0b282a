// Command serve runs DynamoDB Local in the foreground until Ctrl-C: `make dynamodb-local`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/sluice-go/sluice/internal/test/dynamolocal"
)

func main() {
	port := flag.Int("port", 8000, "TCP `port` to listen on")
	flag.Parse()
	if err := serve(*port); err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
}

func serve(port int) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	server, err := dynamolocal.Start(ctx, dynamolocal.Options{Port: port})
	if err != nil {
		return err
	}
	fmt.Printf("DynamoDB Local answers at %s, in memory; Ctrl-C stops it\n", server.Endpoint())
	fmt.Printf("tests use it with: SLUICE_DYNAMODB_ENDPOINT=%s make test-local\n", server.Endpoint())
	select {
	case <-ctx.Done():
	case <-server.Exited(): // Stop says what it printed
	}
	return server.Stop()
}
