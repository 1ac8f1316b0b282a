package main

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redisserver"
)

// redisWorld starts a redis-server and returns a client of it, with connections for so many callers, and what
// ends both.
func redisWorld(ctx context.Context, callers int) (client *redis.Client, end func() error, err error) {
	server, err := redisserver.Start(0)
	if err != nil {
		return nil, nil, err
	}
	client = redis.NewClient(&redis.Options{Addr: server.Addr(), PoolSize: 2 * callers,
		ContextTimeoutEnabled: true})
	end = func() error { return errors.Join(client.Close(), server.Stop()) }
	if err := client.Ping(ctx).Err(); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return client, end, nil
}
