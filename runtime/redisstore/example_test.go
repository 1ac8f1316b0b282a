package redisstore_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

func open(ctx context.Context, addr string) (*limits.Limiter, error) {
	client := redis.NewClient(&redis.Options{Addr: addr}) // or NewFailoverClient, NewClusterClient
	lim, err := limits.New(redisstore.New(client))        // no I/O; Prefix("billing:") keeps several apart
	if err != nil {
		return nil, err
	}
	return lim, lim.Check(ctx) // before serving: version, rights, a cluster's slots, eviction
}

func serve(ctx context.Context, lim *limits.Limiter) error {
	user := limits.User{ID: "123", Project: limits.Project{ID: "1"}}
	lease, err := lim.GPT4.Acquire(ctx, user, limits.GPT4Cost{TPM: 1200})
	if err != nil {
		return err
	}
	return lease.Settle(ctx, limits.GPT4Cost{TPM: 900})
}

func Example() {
	server := miniredis.NewMiniRedis() // for a Redis of your own
	if err := server.Start(); err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()

	ctx := context.Background()
	lim, err := open(ctx, server.Addr())
	if err == nil {
		err = serve(ctx, lim)
	}
	fmt.Println(err)
	for _, key := range server.Keys() {
		fmt.Println("key:", key)
	}
	fmt.Println("tokens:", server.HGet("sluice:gpt-4:rpm:user-123", "tokens"))
	// Output:
	// <nil>
	// key: sluice:#owner
	// key: sluice:gpt-4:rpm:project-1
	// key: sluice:gpt-4:rpm:user-123
	// key: sluice:gpt-4:tpm:project-1
	// key: sluice:gpt-4:tpm:user-123
	// tokens: 99
}
