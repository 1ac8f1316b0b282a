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
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// Redis is the Store in a Redis. Redis stores balances; the limits are those of the schema and of
// overrides.
type Redis struct {
	inRedis

	Client  redis.UniversalClient
	rooted  bool // keys of buckets contain their root: on a cluster
	Buckets *redisstore.Store
	name    string // the URL without its password
	prefix  string
	schema  *schemafile.Schema
}

// ConnectRedis connects to the Redis at url. An empty prefix is the default one.
func ConnectRedis(ctx context.Context, url, prefix string, limits *schemafile.Schema) (*Redis, error) {
	if prefix == "" {
		prefix = redisstore.DefaultPrefix
	}
	s := &Redis{name: redisclient.Name(url), prefix: prefix, schema: limits}
	server := program.NewServer(s.name, func(why string) error {
		return fmt.Errorf("%s takes the connection and does not answer, %s: check that Redis is served there, or "+
			"correct the URL (--redis, SLUICE_REDIS_URL)", s.name, why)
	})
	_, _, done := server.Ask(ctx)
	client, err := redisclient.New(ctx, url) // it keeps ctx
	done(true)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, err
	case err != nil:
		if explained := s.Explain(err); explained != err { //nolint:errorlint // the same value: not explained
			return nil, explained
		}
		return nil, fmt.Errorf("%s does not answer as Redis does: %w: check the port, and the scheme: rediss:// "+
			"is for TLS, redis:// for none (--redis, SLUICE_REDIS_URL)", s.name, err)
	}
	_, s.rooted = client.(*redis.ClusterClient)
	s.Client, s.Buckets = client, redisstore.New(client, redisstore.Prefix(prefix))
	s.inRedis = inRedis{s.Buckets}
	return s, nil
}

// CheckOwner implements Store.
func (s *Redis) CheckOwner(ctx context.Context, owner string) error {
	return s.Explain(redisstore.CheckOwner(ctx, s.Buckets, owner))
}

// Overrides implements Store.
func (s *Redis) Overrides() store.OverrideStore { return s.Buckets.Overrides() }

// Members implements Store.
func (s *Redis) Members() store.MemberStore { return s.Buckets.Members() }

// Catalog implements Store.
func (s *Redis) Catalog() store.Catalog { return s.Buckets.Catalog() }

// Place implements Store.
func (s *Redis) Place() (at, alternatives string) {
	return term.Quote(s.name) + ", prefix " + term.Quote(s.prefix), "prefix or Redis"
}

// Source implements Store.
func (s *Redis) Source() Source { return Source{Redis: s.name, Prefix: s.prefix} }

// Close closes the connections. Its error is of no use: all calls have been answered.
func (s *Redis) Close() { _ = s.Client.Close() }

// Explain says what to do about a Redis that cannot be reached or refuses access.
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
		return fmt.Errorf("%s does not answer%s: start Redis there, or correct the URL (--redis, SLUICE_REDIS_URL)",
			s.name,
			connect.Reason(dial))
	case redis.IsAuthError(err):
		return fmt.Errorf("%s does not accept the user or the password: pass them in the URL, %s", s.name,
			"as in redis://user:password@host:6379 (--redis, SLUICE_REDIS_URL)")
	case untrusted:
		return fmt.Errorf("%s has a certificate that this machine does not trust: %w: set SSL_CERT_FILE to a "+
			"file with its CA's certificate, or use the host name in the certificate", s.name, certificate)
	case redis.HasErrorPrefix(err, "READONLY"):
		return fmt.Errorf("%s is a replica, which accepts no writes: pass the URL of its master (--redis, "+
			"SLUICE_REDIS_URL)", s.name)
	case redis.HasErrorPrefix(err, "OOM"):
		return fmt.Errorf("%s has no memory left for writes: raise its maxmemory", s.name)
	}
	return err
}
