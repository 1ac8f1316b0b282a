package cli

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/redisclient"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// redisStore is the store in a Redis. That has tokens and no numbers: those are the schema's, and overrides'.
type redisStore struct {
	client  redis.UniversalClient
	buckets *redisstore.Store
	name    string // of the Redis, without its password
	prefix  string
	file    schemaFile
}

// newRedisStore connects to the Redis at url. An empty prefix is the default.
func newRedisStore(ctx context.Context, url, prefix string, file schemaFile) (*redisStore, error) {
	if prefix == "" {
		prefix = redisstore.DefaultPrefix
	}
	s := &redisStore{name: redisclient.Name(url), prefix: prefix, file: file}
	client, err := redisclient.New(ctx, url)
	if err != nil {
		return nil, s.explain(err)
	}
	s.client, s.buckets = client, redisstore.New(client, redisstore.Prefix(prefix))
	return s, nil
}

// inspect implements store.
func (s *redisStore) inspect(ctx context.Context, entity, resource, root string) ([]found, error) {
	schema, err := s.file.read()
	if err != nil {
		return nil, err
	}
	l, err := schema.level(entity, resource)
	if err != nil {
		return nil, err
	}
	stored, err := s.stored(ctx, schema, l, root)
	if err != nil {
		return nil, s.explain(err)
	}
	next, err := s.read(ctx, schema, l.spec, redisstore.BucketPage{Buckets: stored})
	return next.buckets, s.explain(err)
}

// stored returns the buckets of l's entity that are meant, as rootHelp says.
func (s *redisStore) stored(ctx context.Context, schema *schema, l level, root string) (all []redisstore.StoredBucket, err error) {
	certain := true
	switch {
	case root != "":
		err = schema.ends(l, root)
	case len(l.charges()) == 0:
		root = l.at
	default:
		certain = false
		root, err = s.rootOf(ctx, schema, l)
	}
	if err != nil {
		return nil, err
	}
	if root != "" {
		b, err := s.buckets.Inspect(ctx, l.spec.Resource, root, l.at, l.spec.Limits...)
		switch {
		case err != nil:
			return nil, err
		case b != nil:
			return []redisstore.StoredBucket{*b}, nil
		case certain:
			return nil, nil
		}
	}
	for page, err := range s.buckets.Buckets(ctx, l.spec.Resource, l.at) {
		if err := errors.Join(append(page.Malformed, err)...); err != nil {
			return nil, err
		}
		all = append(all, page.Buckets...)
	}
	return all, nil
}

// rootOf returns where the stored parents of l's entity lead: nothing where they do not lead all the way.
func (s *redisStore) rootOf(ctx context.Context, schema *schema, l level) (string, error) {
	root, at := l.at, l.at
	for kind := l.kind; chargedAbove(l.spec, kind); kind = schema.kindOf(at) {
		m, found, err := s.members().Get(ctx, at)
		switch {
		case err != nil:
			return "", err
		case found && !m.Cascade:
			return root, nil
		case !found || m.Parent == "" || m.Check(schema.kinds) != nil: // look-ups fail, so that calls bring their chain along
			return "", nil
		}
		at = m.Parent
		if l.spec.Kinds[schema.kindOf(at)].Limits != nil {
			root = at
		}
	}
	return root, nil
}

// chargedAbove reports whether calls on an entity of kind charge a kind above it.
func chargedAbove(spec *runtime.Spec, kind int) bool {
	return slices.ContainsFunc(ancestors(spec.Kinds, kind), func(k int) bool { return spec.Kinds[k].Limits != nil })
}

// ends refuses a root that no chain of l's entity ends with.
func (s *schema) ends(l level, root string) error {
	kind, err := s.entity(root)
	if err != nil {
		return err
	}
	if root != l.at && !slices.Contains(l.charges(), s.kinds[kind].Name) {
		may := append([]string{l.at}, l.charges()...)
		return usageError{fmt.Sprintf("--root %s: a chain of %s on %s ends with one of: %s", root, l.at, l.spec.Resource, strings.Join(may, ", "))}
	}
	return nil
}

// list implements store.
func (s *redisStore) list(ctx context.Context, resource, kind string) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		for next, err := range s.pages(ctx, resource, kind) {
			if err != nil {
				yield(page{}, s.explain(err))
				return
			}
			if !yield(next, nil) {
				return
			}
		}
	}
}

// pages is list, whose errors are the store's.
func (s *redisStore) pages(ctx context.Context, resource, kind string) iter.Seq2[page, error] {
	return func(yield func(page, error) bool) {
		schema, err := s.file.read()
		var spec *runtime.Spec
		if err == nil {
			spec, err = schema.resource(resource)
		}
		if err == nil && kind != "" {
			_, err = schema.level(kind, resource)
		}
		if err != nil {
			yield(page{}, err)
			return
		}
		for stored, err := range s.buckets.Buckets(ctx, resource, kind) {
			var next page
			if err == nil {
				next, err = s.read(ctx, schema, spec, stored)
			}
			if !yield(next, err) || err != nil {
				return
			}
		}
	}
}

// read works out what stored buckets have now, by Redis's clock and by the numbers in force for them.
func (s *redisStore) read(ctx context.Context, schema *schema, spec *runtime.Spec, stored redisstore.BucketPage) (next page, err error) {
	next.malformed = stored.Malformed
	if len(stored.Buckets) == 0 {
		return next, nil
	}
	var at []string
	for _, b := range stored.Buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		at = append(at, b.Entity, kind)
	}
	slices.Sort(at)
	at = slices.Compact(at)
	said, err := s.overrides().Get(ctx, spec, at...)
	if err != nil {
		return next, err
	}
	now, err := s.buckets.Time(ctx)
	if err != nil {
		return next, err
	}
	level := func(name string) runtime.Stored {
		i, _ := slices.BinarySearch(at, name)
		return said[i]
	}
	for _, b := range stored.Buckets {
		kind, _, _ := strings.Cut(b.Entity, "-")
		own := slices.IndexFunc(spec.Kinds, func(k runtime.Kind) bool { return k.Name == kind && k.Limits != nil })
		if own < 0 {
			next.strange = append(next.strange, "kind "+kind)
			continue
		}
		levels := []runtime.Stored{level(b.Entity), level(kind)}
		next.buckets = append(next.buckets, found{
			entity: b.Entity, resource: spec.Resource, root: b.Root, revision: spec.Revision, overrides: versions(levels),
			limits: limitsOf(spec, b, runtime.Resolve(spec.Kinds[own].Limits, levels...), now.UnixMilli()),
		})
		for _, l := range b.Limits {
			if !slices.Contains(spec.Limits, l.Name) {
				next.strange = append(next.strange, "limit "+l.Name)
			}
		}
	}
	return next, nil
}

// limitsOf returns what b has at now (ms) of the limits in force for it. One that is not stored is full.
func limitsOf(spec *runtime.Spec, b redisstore.StoredBucket, inForce []bucket.Limit, now int64) []limitNow {
	all := make([]limitNow, len(inForce))
	for i, limit := range inForce {
		stored := redisstore.StoredLimit{Tokens: limit.Burst, Refilled: now}
		if at := slices.IndexFunc(b.Limits, func(l redisstore.StoredLimit) bool { return l.Name == spec.Limits[i] }); at >= 0 {
			stored = b.Limits[at]
		}
		all[i] = nowOf(spec.Limits[i], bucket.Balance{Limit: limit, Tokens: stored.Tokens}, stored.Refilled, now)
	}
	return all
}

// fill implements store.
func (s *redisStore) fill(ctx context.Context, b found, limits []string) (*found, []string, error) {
	all := make([]string, len(b.limits))
	for i, l := range b.limits {
		all[i] = l.name
	}
	for _, name := range limits {
		if !slices.Contains(all, name) {
			return nil, nil, notIn(b, name, all)
		}
	}
	if len(limits) == 0 {
		limits = all
	}
	if err := s.buckets.Fill(ctx, b.resource, b.root, b.entity, limits...); err != nil {
		return nil, nil, s.explain(err)
	}
	after, err := s.inspect(ctx, b.entity, b.resource, b.root)
	if err != nil {
		return nil, nil, err
	}
	if len(after) > 0 {
		return &after[0], limits, nil
	}
	full := b // all of it
	full.limits = slices.Clone(b.limits)
	for i, l := range full.limits {
		full.limits[i].available, full.limits[i].fullIn = l.Burst, 0
	}
	return &full, limits, nil
}

// notIn is the error for a limit that b has not.
func notIn(b found, name string, has []string) error {
	return &runtime.InvalidError{
		Resource: b.resource, Field: "limit", Value: name,
		Reason: fmt.Sprintf("is not in the bucket of %s, which has %s", b.entity, strings.Join(has, ", ")),
	}
}

func (s *redisStore) overrides() runtime.OverrideStore { return s.buckets.Overrides() }

func (s *redisStore) members() runtime.MemberStore { return s.buckets.Members() }

func (s *redisStore) place() (at, alternatives string) {
	return s.name + ", prefix " + s.prefix, "prefix or Redis"
}

func (s *redisStore) describe(b *board) { b.Redis, b.Prefix = s.name, s.prefix }

// close closes the connections. What was asked for has been answered.
func (s *redisStore) close() { _ = s.client.Close() }

// explain says what to do about a Redis that does not answer, or does not let us in.
func (s *redisStore) explain(err error) error {
	url, wrong := errors.AsType[*redisclient.URLError](err)
	dial, dialed := errors.AsType[*net.OpError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case wrong:
		return usageError{"--redis: " + url.Error()}
	case dialed && dial.Op == "dial":
		return fmt.Errorf("nothing answers at %s%s: is Redis running there? (--redis, SLUICE_REDIS_URL)", s.name, reason(dial))
	case redis.IsAuthError(err):
		return fmt.Errorf("%s does not accept the user or the password: pass them in the URL, %s", s.name,
			"as in redis://user:password@host:6379 (--redis, SLUICE_REDIS_URL)")
	}
	return err
}
