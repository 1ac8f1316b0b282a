package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// explain returns the error of c, which Redis has rejected: it names the key that is not a bucket, if there
// is one, and otherwise says what the error means.
func (p *pipeline) explain(c *call) error {
	first := c.requests[0]
	if wrong := findMalformed(context.WithoutCancel(first.ctx), p.session, c.err, first.portions); wrong != nil {
		return wrong
	}
	return p.db.SetupError(c.err)
}

// findMalformed returns an error that names the key of portions that is not a bucket, if Redis has rejected a
// script with err for that reason; else nil.
func findMalformed(ctx context.Context, s *session, err error, portions []portion) error {
	if said := err.Error(); !strings.Contains(said, database.WrongType) && !strings.Contains(said, "script") {
		return nil
	}
	for _, p := range portions {
		for _, key := range p.keys {
			event := store.StoreEvent{
				Call: "HMGET", Path: "read", Resource: p.spec.Resource, Template: p.spec.Template,
				Outcome: "found", Began: s.env.Clock.Now(),
			}
			reply, err := s.db.Client.HMGet(ctx, key.(string), text.BucketFields()...).Result()
			switch {
			case err != nil:
				event.Outcome = "failed"
			case !text.Stored(reply):
				event.Outcome = "missing"
			}
			s.report(ctx, event)
			if err != nil && !redis.HasErrorPrefix(err, database.WrongType) {
				continue
			}
			if _, err := decodeBucket(reply, err); err != nil {
				return malformed(key.(string), err)
			}
		}
	}
	return nil
}

// errNotFinite is the error of a script call whose balances are not all numbers.
var errNotFinite = errors.New("the script replied with a balance that is no number")

// malformed returns the error for a key that holds something else than a bucket.
func malformed(key string, err error) error {
	return &store.SetupError{
		What: fmt.Sprintf("the key %s is not a bucket", store.Quote(key)),
		Do:   "delete it, since a missing bucket is a full one, or use another Prefix",
		Err:  err,
	}
}

// decodeBucket decodes the reply to an HMGET of a bucket's fields; it returns nil if there is no bucket.
func decodeBucket(fields []any, err error) (*StoredLimit, error) {
	if err != nil || !text.Stored(fields) {
		return nil, err
	}
	l := &StoredLimit{Of: text.Of(fields)}
	held := text.HasHolds(fields)
	if held {
		if l.Cells, l.Epoch, err = text.Holds(fields); err != nil {
			return nil, err
		}
	}
	switch {
	case text.HasWindow(fields):
		l.Used, l.Ends, err = text.Window(fields)
	case !held:
		l.Tokens, l.Refilled, err = text.Balance(fields)
	}
	return l, err
}
