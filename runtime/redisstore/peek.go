package redisstore

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// Peek implements store.Session. It runs the script that charges without any cost, which returns the
// balances and changes nothing.
func (s *session) Peek(ctx context.Context, call *store.Call) error {
	r := s.newRequest(ctx, call, pathPeek, func(part *store.Part) []int64 { return part.Cost })
	if err := (resolver{s}).resolve(r); err != nil {
		return err
	}
	balances, exist := make([]*redis.IntSliceCmd, len(r.portions)), make([]*redis.IntCmd, len(r.portions))
	event := store.StoreEvent{
		Call: callPipeline, Path: pathPeek, Resource: r.portions[0].spec.Resource,
		Template: r.portions[0].spec.Template, Buckets: len(r.portions),
	}
	fills := s.fills.Load()
	err := s.read(ctx, event, func(ctx context.Context) (bool, error) {
		pipe := s.db.Client.Pipeline()
		for i := range r.portions {
			// The script's text, not its hash: a peek is rare, and another node of a cluster may not have
			// the script.
			script := r.portions[i].script(0)
			args := script.args(script.eval, r.portions[i:i+1], s.server.At(s.now()), oldest(s.env), 0)
			balances[i] = redis.NewIntSliceCmd(ctx, args...)
			_ = pipe.Process(ctx, balances[i])
			exist[i] = redis.NewIntCmd(ctx, append([]any{"exists"}, r.portions[i].keys...)...)
			_ = pipe.Process(ctx, exist[i])
		}
		_, err := pipe.Exec(ctx)
		found := true
		for i := range exist {
			found = found && exist[i].Val() > 0
		}
		return found, err
	})
	infinite := func(b *redis.IntSliceCmd) bool { return !text.Finite(b.Val()) }
	if err == nil && slices.ContainsFunc(balances, infinite) {
		err = s.db.SetupError(errNotFinite)
	}
	if _, refused := errors.AsType[*store.SetupError](err); refused {
		if wrong := findMalformed(context.WithoutCancel(ctx), s, err, r.portions); wrong != nil {
			return wrong
		}
	}
	if err != nil {
		return err
	}
	now := s.now()
	r.images = make([]*bucket.Image, len(r.portions))
	for i := range r.portions {
		if exist[i].Val() == 0 {
			continue
		}
		p := &r.portions[i]
		reply := balances[i].Val()
		r.images[i], _, _ = p.inForce.image(reply[1:], now)
		p.update(r.images[i], reply[0], fills)
	}
	r.fillCall(true)
	return nil
}
