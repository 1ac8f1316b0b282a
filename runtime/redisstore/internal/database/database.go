// Package database is the Redis that a store works on: its client, the names of its keys, what its errors
// mean, and reads of all its nodes.
package database

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/redis/go-redis/v9"
)

// DB is a Redis: a node, a master that Sentinels watch, or a cluster. It is safe for concurrent use.
type DB struct {
	Client redis.UniversalClient
	Keys   Keys
}

// WrongType is the code of Redis's error for a command on a key that holds another type.
const WrongType = "WRONGTYPE"

// Exec runs pipe, whose commands have one key each, and returns the first error.
func Exec(ctx context.Context, pipe redis.Pipeliner) error {
	commands, err := pipe.Exec(ctx)
	for _, c := range commands {
		if args := c.Args(); c.Err() != nil && len(args) > 1 {
			return OnKey(fmt.Sprint(args[1]), c.Err())
		}
	}
	return err
}

// SetMembers returns the members of a Redis set, sorted. It fails as OperationError says.
func (d *DB) SetMembers(ctx context.Context, key string) ([]string, error) {
	all, err := d.Client.SMembers(ctx, key).Result()
	if err != nil {
		return nil, d.OperationError(ctx, OnKey(key, err))
	}
	slices.Sort(all)
	return all, nil
}

// scanCount is the number of keys that one SCAN visits.
const scanCount = 1000

// Scan returns the keys that pattern matches, sorted. It fails as OperationError says.
func (d *DB) Scan(ctx context.Context, pattern string) (keys []string, err error) {
	masters, err := d.nodes(ctx)
	if err != nil {
		return nil, d.OperationError(ctx, err)
	}
	for _, master := range masters {
		scan := master.Scan(ctx, 0, pattern, scanCount).Iterator()
		for scan.Next(ctx) {
			keys = append(keys, scan.Val())
		}
		if err := scan.Err(); err != nil {
			return nil, d.OperationError(ctx, err)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys), nil // SCAN may return a key twice
}

// nodes returns the clients to scan: one for each node that holds keys of its own.
func (d *DB) nodes(ctx context.Context) (all []redis.Cmdable, err error) {
	var mu sync.Mutex
	add := func(_ context.Context, c *redis.Client) error {
		mu.Lock()
		defer mu.Unlock()
		all = append(all, c)
		return nil
	}
	switch client := d.Client.(type) {
	case *redis.ClusterClient:
		// an empty result would mean that nothing is stored
		if err = client.ForEachMaster(ctx, add); err == nil && len(all) == 0 {
			err = errors.New("no master of the cluster has a slot")
		}
	case *redis.Ring:
		err = client.ForEachShard(ctx, add)
	default:
		all = append(all, d.Client)
	}
	return all, err
}
