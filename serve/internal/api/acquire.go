package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/once"
)

// acquire is POST /v1/{resource}/acquire.
func (c *call) acquire() error {
	on, err := c.in.Resource(c.r.PathValue("resource"))
	if err != nil {
		return unknownResource(err)
	}
	text, err := c.body()
	if err != nil {
		return err
	}
	b, err := decode(text, memberName, memberEntity, memberCost, memberUsage, memberWait)
	if err != nil {
		return err
	}
	claim, err := b.claim(c.r.Context(), on)
	if err != nil {
		return err
	}
	terms := leases.Terms{Wait: b.wait, From: c.client(), Life: leases.Grace}
	return c.grant(text, b.wait > 0, func(ctx context.Context) ([]leases.Granted, error) {
		return c.Leases.Acquire(ctx, c.in, terms, claim)
	}, func(dst []byte, granted []leases.Granted) []byte { return appendGranted(dst, &granted[0]) })
}

// acquireAll is POST /v1/acquire: all or none.
func (c *call) acquireAll() error {
	text, err := c.body()
	if err != nil {
		return err
	}
	all, err := decodeAll(text, memberResource, memberName, memberEntity, memberCost, memberUsage)
	if err != nil {
		return err
	}
	if len(all) == 0 {
		return answer(http.StatusBadRequest, "The body has no claim: send at least one.")
	}
	claims := make([]leases.Claim, len(all))
	for i := range all {
		on, err := c.in.Resource(all[i].resource)
		if err == nil {
			claims[i], err = all[i].claim(c.r.Context(), on)
		}
		if invalid, ok := errors.AsType[*runtime.InvalidError](err); ok {
			return &problem{Status: http.StatusBadRequest, Resource: invalid.Resource,
				Detail: fmt.Sprintf("Claim %d: %s", i+1, sentence(err))}
		}
		if err != nil {
			return err
		}
	}
	terms := leases.Terms{From: c.client(), Life: leases.Grace}
	return c.grant(text, false, func(ctx context.Context) ([]leases.Granted, error) {
		return c.Leases.Acquire(ctx, c.in, terms, claims...)
	}, func(dst []byte, granted []leases.Granted) []byte {
		dst = append(dst, '[')
		for i := range granted {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendGranted(dst, &granted[i])
		}
		return append(dst, ']')
	})
}

// grant answers with what acquire grants, and acquires once for each Idempotency-Key. waits says that acquire
// waits for tokens: draining ends such a wait.
func (c *call) grant(text []byte, waits bool, acquire func(context.Context) ([]leases.Granted, error),
	write func([]byte, []leases.Granted) []byte) error {
	if c.Draining.Err() != nil {
		return errDraining
	}
	ctx := c.r.Context()
	if waits {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(c.Draining, cancel)()
	}
	keys := c.r.Header.Values("Idempotency-Key")
	var granted []leases.Granted
	var err error
	switch {
	case len(keys) == 0:
		granted, err = acquire(ctx)
	case len(keys) > 1 || keys[0] == "" || len(keys[0]) > mostKey:
		return answer(http.StatusBadRequest, "The header Idempotency-Key is not valid: send one "+
			"of 1 to 255 bytes.")
	default:
		granted, err = c.grantOnce(ctx, keys[0], text, acquire)
	}
	if err != nil && c.Draining.Err() != nil && c.r.Context().Err() == nil && ctx.Err() != nil {
		return errDraining
	}
	if err != nil {
		return err
	}
	c.reply(append(write(make([]byte, 0, 128*len(granted)), granted), '\n'))
	return nil
}

// grantOnce is acquire, unless an acquire with the same key has succeeded: then it returns that one's leases.
func (c *call) grantOnce(ctx context.Context, key string, text []byte,
	acquire func(context.Context) ([]leases.Granted, error)) (granted []leases.Granted, err error) {
	request := slices.Concat([]byte(c.r.URL.Path), []byte{0}, text)
	result, repeated, err := c.Keys.Do(ctx, c.caller(), key, request, func() (once.Result, error) {
		if granted, err = acquire(ctx); err != nil {
			return once.Result{}, err
		}
		return once.Result{First: granted[0].Number, Count: len(granted)}, nil
	})
	if err != nil || !repeated {
		return granted, err
	}
	for i := range result.Count {
		one := leases.Granted{Number: result.First + uint64(i)}
		one.Name = c.Leases.Name(one.Number)
		_ = c.Leases.Adopt(one.Name, c.client()) // if it has ended, calls on it say so
		granted = append(granted, one)
	}
	return granted, nil
}

// caller returns what tells the client from others, whose keys are their own: its token and certificate.
func (c *call) caller() string {
	caller, _ := c.r.Context().Value(callerKey{}).(string)
	if c.r.TLS != nil && len(c.r.TLS.PeerCertificates) > 0 {
		caller += "\x00" + string(c.r.TLS.PeerCertificates[0].Raw)
	}
	return caller
}

// appendGranted appends what a client gets of a lease.
func appendGranted(dst []byte, g *leases.Granted) []byte {
	dst = append(append(append(dst, `{"lease":"`...), g.Name...), '"')
	if g.Lease == nil { // granted by an earlier request with the same key
		return append(dst, '}')
	}
	dst = appendRemaining(append(dst, ','), g.On, g.Lease)
	if g.Lease.Degraded() {
		dst = append(dst, `,"degraded":true`...)
	}
	if g.Lease.Shadowed() != nil {
		dst = append(dst, `,"shadowed":true`...)
	}
	return append(dst, '}')
}

// appendRemaining appends what the lease's last write left of each limit, as far as that is known.
func appendRemaining(dst []byte, on *limits.Resource, lease *limits.Lease) []byte {
	dst = append(dst, `"remaining":{`...)
	left := lease.Balances()
	first := true
	for i, name := range on.Spec.Limits {
		least, known := leastOf(left, name)
		if !known {
			continue
		}
		if !first {
			dst = append(dst, ',')
		}
		first = false
		dst = append(strconv.AppendQuote(dst, name), ':')
		dst = on.AppendNumber(dst, i, least)
	}
	return append(dst, '}')
}

// leastOf returns the least balance of a limit.
func leastOf(all []runtime.Balance, limit string) (least int64, known bool) {
	for i := range all {
		if b := &all[i]; b.Limit == limit && (!known || b.Available < least) {
			least, known = b.Available, true
		}
	}
	return least, known
}

// peek is POST /v1/{resource}/peek.
func (c *call) peek() error {
	on, err := c.in.Resource(c.r.PathValue("resource"))
	if err != nil {
		return unknownResource(err)
	}
	text, err := c.body()
	if err != nil {
		return err
	}
	b, err := decode(text, memberName, memberEntity)
	if err == nil {
		on, err = on.Named(c.r.Context(), b.name)
	}
	if err != nil {
		return err
	}
	entity, err := on.Entity(b.entity)
	if err != nil {
		return err
	}
	snap, err := on.Peek(c.r.Context(), entity)
	if err != nil {
		return err
	}
	c.reply(append(appendSnapshot(nil, on, entity.Kind(), snap), '\n'))
	return nil
}

// appendSnapshot appends what Peek saw. It names buckets by their kinds: a client need not know the ids of
// parents that are looked up.
func appendSnapshot(dst []byte, on *limits.Resource, kind int, s *runtime.Snapshot[[]int64]) []byte {
	dst = appendLimits(append(dst, `{"available":`...), on, on.Limits(kind), s.Available)
	dst = append(dst, `,"buckets":[`...)
	for i, b := range s.Buckets {
		if i > 0 {
			dst = append(dst, ',')
		}
		of := on.BucketKind(b.Entity, i > 0 && s.Buckets[i-1].Entity == b.Entity)
		own := of.Indexes()
		dst = strconv.AppendQuote(append(dst, `{"kind":`...), of.Name)
		dst = appendLimits(append(dst, `,"available":`...), on, own, b.Available)
		dst = appendLimits(append(dst, `,"capacity":`...), on, own, b.Capacity)
		dst = appendLimits(append(dst, `,"burst":`...), on, own, b.Burst)
		dst = strconv.AppendInt(append(dst, `,"full_in_ms":`...), b.Full.Milliseconds(), 10)
		dst = strconv.AppendBool(append(dst, `,"exists":`...), b.Exists)
		if of.AllNames {
			dst = append(dst, `,"all_names":true`...)
		}
		dst = append(dst, '}')
	}
	return append(dst, "]}"...)
}

// appendLimits appends numbers of limits, by their names.
func appendLimits(dst []byte, on *limits.Resource, which []int, numbers []int64) []byte {
	dst = append(dst, '{')
	for n, i := range which {
		if n > 0 {
			dst = append(dst, ',')
		}
		dst = append(strconv.AppendQuote(dst, on.Spec.Limits[i]), ':')
		dst = on.AppendNumber(dst, i, numbers[i])
	}
	return append(dst, '}')
}
