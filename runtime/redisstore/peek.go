package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Peek implements runtime.Session: the script that charges, without a call to charge, says what is there, and changes nothing.
func (s *session) Peek(ctx context.Context, call *runtime.Call) error {
	r := s.request(ctx, call, pathPeek, func(part *runtime.Part) []int64 { return part.Cost })
	if err := s.resolve(r); err != nil {
		return err
	}
	levels, there := make([]*redis.IntSliceCmd, len(r.shares)), make([]*redis.IntCmd, len(r.shares))
	event := runtime.StoreEvent{Call: pipeline, Path: pathPeek, Resource: r.shares[0].spec.Resource, Buckets: len(r.shares)}
	err := s.read(ctx, event, func(ctx context.Context) (bool, error) {
		pipe := s.client.Pipeline()
		for i := range r.shares {
			sh := &r.shares[i]
			// As text: a peek is rare, and another node of a cluster may not have the script.
			levels[i] = redis.NewIntSliceCmd(ctx, evalArgs(s.fallback.eval, r.shares[i:i+1], true, 0)...)
			_ = pipe.Process(ctx, levels[i])
			there[i] = redis.NewIntCmd(ctx, append([]any{"exists"}, sh.keys...)...)
			_ = pipe.Process(ctx, there[i])
		}
		_, err := pipe.Exec(ctx)
		found := true
		for i := range there {
			found = found && there[i].Val() > 0
		}
		return found, err
	})
	if _, refused := errors.AsType[*runtime.SetupError](err); refused {
		if wrong := s.noBucket(context.WithoutCancel(ctx), err, r.shares); wrong != nil {
			return wrong
		}
	}
	if err != nil {
		return err
	}
	now := s.now()
	r.images = make([]*bucket.Image, len(r.shares))
	for i := range r.shares {
		if there[i].Val() == 0 {
			continue
		}
		sh := &r.shares[i]
		r.images[i] = sh.shape.image(levels[i].Val()[1:], now)
		sh.saw(r.images[i])
	}
	r.show(true)
	return nil
}
