package bucketstore

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// redisStore is the store in a Redis. That has tokens and no numbers: those are the schema's, and overrides'.
type Redis struct {
	Client  redis.UniversalClient
	rooted  bool // keys of buckets have the root of their chain: on a cluster
	Buckets *redisstore.Store
	name    string // of the Redis, without its password
	prefix  string
	schema  *schemafile.Schema
}

// newRedisStore connects to the Redis at url. An empty prefix is the default.
func ConnectRedis(ctx context.Context, url, prefix string, limits *schemafile.Schema) (*Redis, error) {
	if prefix == "" {
		prefix = redisstore.DefaultPrefix
	}
	s := &Redis{name: redisclient.Name(url), prefix: prefix, schema: limits}
	client, err := redisclient.New(ctx, url)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		if told := s.Explain(err); told != err { //nolint:errorlint // that explain has nothing to say, whatever err is
			return nil, told
		}
		return nil, fmt.Errorf("%s does not answer as Redis does: %w: is that its port, and is rediss:// for TLS, redis:// for none? (--redis, SLUICE_REDIS_URL)", s.name, err)
	}
	_, s.rooted = client.(*redis.ClusterClient)
	s.Client, s.Buckets = client, redisstore.New(client, redisstore.Prefix(prefix))
	return s, nil
}

func (s *Redis) Overrides() store.OverrideStore { return s.Buckets.Overrides() }

func (s *Redis) Members() store.MemberStore { return s.Buckets.Members() }

func (s *Redis) Place() (at, alternatives string) {
	return s.name + ", prefix " + s.prefix, "prefix or Redis"
}

func (s *Redis) Source() source { return source{Redis: s.name, Prefix: s.prefix} }

// close closes the connections. What was asked for has been answered.
func (s *Redis) Close() { _ = s.Client.Close() }

// explain says what to do about a Redis that does not answer, or does not let us in.
func (s *Redis) Explain(err error) error {
	url, wrong := errors.AsType[*redisclient.URLError](err)
	dial, dialed := errors.AsType[*net.OpError](err)
	certificate, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case wrong:
		return program.Usagef("%v (--redis, SLUICE_REDIS_URL)", url)
	case dialed && dial.Op == "dial":
		return fmt.Errorf("nothing answers at %s%s: is Redis running there? (--redis, SLUICE_REDIS_URL)", s.name, connect.Reason(dial))
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
