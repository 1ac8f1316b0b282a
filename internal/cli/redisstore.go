package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// redisStore is the store in a Redis. That has tokens and no numbers: those are the schema's, and overrides'.
type redisStore struct {
	client  redis.UniversalClient
	rooted  bool // keys of buckets have the root of their chain: on a cluster
	buckets *redisstore.Store
	name    string // of the Redis, without its password
	prefix  string
	schema  *schema
}

// newRedisStore connects to the Redis at url. An empty prefix is the default.
func newRedisStore(ctx context.Context, url, prefix string, limits *schema) (*redisStore, error) {
	if prefix == "" {
		prefix = redisstore.DefaultPrefix
	}
	s := &redisStore{name: redisclient.Name(url), prefix: prefix, schema: limits}
	client, err := redisclient.New(ctx, url)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		if told := s.explain(err); told != err { //nolint:errorlint // that explain has nothing to say, whatever err is
			return nil, told
		}
		return nil, fmt.Errorf("%s does not answer as Redis does: %w: is that its port, and is rediss:// for TLS, redis:// for none? (--redis, SLUICE_REDIS_URL)", s.name, err)
	}
	_, s.rooted = client.(*redis.ClusterClient)
	s.client, s.buckets = client, redisstore.New(client, redisstore.Prefix(prefix))
	return s, nil
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
	certificate, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case wrong:
		return usageError{url.Error() + " (--redis, SLUICE_REDIS_URL)"}
	case dialed && dial.Op == "dial":
		return fmt.Errorf("nothing answers at %s%s: is Redis running there? (--redis, SLUICE_REDIS_URL)", s.name, reason(dial))
	case redis.IsAuthError(err):
		return fmt.Errorf("%s does not accept the user or the password: pass them in the URL, %s", s.name,
			"as in redis://user:password@host:6379 (--redis, SLUICE_REDIS_URL)")
	case untrusted:
		return fmt.Errorf("%s shows a certificate that this machine does not trust: %w: set SSL_CERT_FILE to a file with its CA's, or name the host that it is for", s.name, certificate)
	case redis.HasErrorPrefix(err, "READONLY"):
		return fmt.Errorf("%s is a replica, which takes no writes: pass the URL of its master (--redis, SLUICE_REDIS_URL)", s.name)
	case redis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("%s has no memory left to write to: raise its maxmemory", s.name)
	}
	return err
}
