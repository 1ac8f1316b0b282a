package database

import (
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
)

// membersPage is the number of sets that one pipeline asks for a member.
const membersPage = 100

// GrantsOf returns the keys of the grants to an entity. It fails as Scan does.
func (d *DB) GrantsOf(ctx context.Context, entity string) (grants []string, err error) {
	keys, err := d.Scan(ctx, text.Glob(d.Keys.grants())+"*"+text.Glob(entity)+"#*")
	return slices.DeleteFunc(keys, func(key string) bool { return !d.Keys.IsGrant(key, entity) }), err
}

// ListsOf returns the keys of the sets that have entity: of overrides, and of children.
func (d *DB) ListsOf(ctx context.Context, entity string) (lists []string, err error) {
	keys, err := d.Scan(ctx, text.Glob(d.Keys.Prefix)+"#c*")
	if err != nil {
		return nil, err
	}
	keys = slices.DeleteFunc(keys, func(key string) bool {
		resource, at := d.Keys.ParseConfig(key)
		return !strings.HasPrefix(key, d.Keys.Children("")) && (resource == "" || at != "")
	})
	for chunk := range slices.Chunk(keys, membersPage) {
		pipe := d.Client.Pipeline()
		has := make([]*redis.BoolCmd, len(chunk))
		for i, key := range chunk {
			has[i] = pipe.SIsMember(ctx, key, entity)
		}
		if err := Exec(ctx, pipe); err != nil {
			return nil, d.OperationError(ctx, err)
		}
		for i, key := range chunk {
			if has[i].Val() {
				lists = append(lists, key)
			}
		}
	}
	return lists, nil
}
