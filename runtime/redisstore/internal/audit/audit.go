// Package audit keeps the records of changes that people make in Redis. The script of a change appends its
// record to a list.
package audit

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/store"
)

// Record is the record of a change, for the script that makes the change.
type Record struct {
	Key  string // of the list, in the slot of what is changed
	Text string
}

// New returns the record of a change of what is stored at key. It first adds the record's list to the set of
// lists that List reads, since in a cluster no script can write both.
func New(ctx context.Context, db *database.DB, key string, c store.Change) (Record, error) {
	list, ok := db.Keys.Audit(key)
	if !ok {
		return Record{}, &store.InvalidError{
			Resource: c.Resource, Field: "id", Value: c.At,
			Reason: "contains '}' and no hash tag: a cluster keeps no record of a change beside it",
		}
	}
	if key == db.Keys.Catalog(c.Resource) { // many change at once: each name has a list of its own
		list += ":" + c.At
	}
	if c.By, c.Reason = store.ActorOf(ctx); c.By == "" {
		c.By = user(ctx, db)
	}
	text, err := json.Marshal(c)
	if err != nil {
		return Record{}, fmt.Errorf("record of a change: %w", err)
	}
	set, pipe := db.Keys.Audits(subject(key, db.Keys, c)), db.Client.Pipeline()
	pipe.SAdd(ctx, set, list)
	pipe.Expire(ctx, set, store.ChangesKept)
	if err := database.Exec(ctx, pipe); err != nil {
		return Record{}, db.OperationError(ctx, err)
	}
	return Record{list, string(text)}, nil
}

// subject returns what a change at key is listed under.
func subject(key string, keys database.Keys, c store.Change) store.Audited {
	switch {
	case key == keys.Plans(c.Resource):
		return store.Audited{Plans: c.Resource}
	case key == keys.Catalog(c.Resource):
		return store.Audited{Catalog: c.Resource}
	case strings.Contains(c.At, "-"):
		return store.Audited{Entity: c.At}
	}
	return store.Audited{Kind: c.At}
}

// user returns the user of the connection, "" for a Redis without users and for one that may not ask.
func user(ctx context.Context, db *database.DB) string {
	name, err := db.Client.Do(ctx, "ACL", "WHOAMI").Text()
	if err != nil {
		return ""
	}
	return "user " + name
}

// List yields the records of what is audited since an instant, oldest first. before decodes what the script
// of a change found stored before. List ends with the first error.
func List(
	ctx context.Context, db *database.DB, of store.Audited, since time.Time,
	before func(text string) (map[string]string, error),
) iter.Seq2[store.Change, error] {
	return func(yield func(store.Change, error) bool) {
		lists, err := db.SetMembers(ctx, db.Keys.Audits(of))
		if err != nil {
			yield(store.Change{}, err)
			return
		}
		pipe, replies := db.Client.Pipeline(), make([]*redis.StringSliceCmd, len(lists))
		for i, list := range lists {
			replies[i] = pipe.LRange(ctx, list, 0, -1)
		}
		if err := database.Exec(ctx, pipe); err != nil && len(lists) > 0 {
			yield(store.Change{}, db.OperationError(ctx, err))
			return
		}
		var all []store.Change
		for i, list := range lists {
			for _, text := range replies[i].Val() {
				c, err := decode(text, before)
				if err != nil {
					yield(store.Change{}, &store.SetupError{
						What: "the record of a change is malformed", Err: err,
						Do: "remove it from the list " + store.Quote(list),
					})
					return
				}
				if !c.Time.Before(since) {
					all = append(all, c)
				}
			}
		}
		slices.SortStableFunc(all, func(a, b store.Change) int { return a.Time.Compare(b.Time) })
		for _, c := range all {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// decode decodes a record: the version that the change gave what it changed, what was there, and the change.
func decode(text string, before func(string) (map[string]string, error)) (c store.Change, err error) {
	version, rest, _ := strings.Cut(text, "\n")
	was, change, _ := strings.Cut(rest, "\n")
	ms, err := strconv.ParseInt(version, 10, 64)
	if err == nil {
		err = json.Unmarshal([]byte(change), &c)
	}
	if err == nil {
		c.Before, err = before(was)
	}
	c.Time = time.UnixMilli(ms).UTC()
	return c, err
}

// Fields decodes what the scripts of overrides and plans have found, "" for nothing.
func Fields(text string) (fields map[string]string, err error) {
	if text == "" {
		return nil, nil
	}
	err = json.Unmarshal([]byte(text), &fields)
	return fields, err
}
