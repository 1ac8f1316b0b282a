// Package redisclient makes the Redis client of our programs from a URL, as go-redis reads URLs: of a node,
// of what a Sentinel watches, or of a cluster. A password in the URL is in no error and in no name that it
// returns.
package redisclient

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// forms says how URLs are written.
const forms = "redis://[[user]:password@]host:port[/db], rediss:// for TLS, unix:///path/to/socket, " +
	"?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster; in a password / ? # % " +
	"are %2F %3F %23 %25"

// New returns a client of the Redis at text. It asks the node whether it belongs to a cluster, and then reads
// all nodes of the cluster. If the node does not answer that, for example because the user may not ask, New
// takes it for a single node. The client does not observe a context while it waits for a reply, so New closes
// it when ctx is over.
func New(ctx context.Context, text string) (redis.UniversalClient, error) {
	u, err := parse(text)
	if err != nil {
		return nil, err
	}
	switch options := u.Query(); {
	case options.Has("master_name"):
		o, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, refused(err)
		}
		o.DialerRetries = 1
		return until(ctx, redis.NewFailoverClient(o)), nil
	case options.Has("addr"):
		return cluster(ctx, text)
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, refused(err)
	}
	o.DialerRetries = 1 // go-redis repeats the command, which dials again
	node := until(ctx, redis.NewClient(o))
	info, err := node.Info(ctx, "cluster").Result()
	_, answered := errors.AsType[redis.Error](err)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil && (!answered || redis.IsAuthError(err)):
		return nil, errors.Join(err, node.Close())
	case u.Scheme == "unix" || !strings.Contains(info, "cluster_enabled:1"):
		return node, nil
	}
	if err := node.Close(); err != nil {
		return nil, err
	}
	return cluster(ctx, text)
}

// until returns client, which is closed when ctx is over.
func until[C redis.UniversalClient](ctx context.Context, client C) C {
	context.AfterFunc(ctx, func() { _ = client.Close() })
	return client
}

// Check returns a *URLError for a text that New would refuse before it connects.
func Check(text string) error {
	u, err := parse(text)
	if err != nil {
		return err
	}
	switch options := u.Query(); {
	case options.Has("master_name"):
		_, err = redis.ParseFailoverURL(text)
	case options.Has("addr"):
		_, err = redis.ParseClusterURL(text)
	default:
		_, err = redis.ParseURL(text)
	}
	if err != nil {
		return refused(err)
	}
	return nil
}

// parse reads a URL of a Redis as far as New needs it.
func parse(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	// what is wrong may be the password
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" || u.Fragment != "" {
		return nil, &URLError{"that is no URL of a Redis"}
	}
	return u, nil
}

// cluster returns a client of a cluster.
func cluster(ctx context.Context, text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, refused(err)
	}
	o.DialerRetries = 1
	return until(ctx, redis.NewClusterClient(o)), nil
}

// URLError says what is wrong with a URL.
type URLError struct{ what string }

// Error says what is wrong, and how URLs are written.
func (e *URLError) Error() string { return e.what + ": want " + forms }

// mistaken is a path or an option that has credentials, which stand before an '@'.
var mistaken = regexp.MustCompile(`\S*@`)

// refused is what go-redis says of a URL's path or options.
func refused(err error) error {
	return &URLError{mistaken.ReplaceAllString(strings.TrimPrefix(err.Error(), "redis: "), "***@")}
}

// Name returns what a URL may be called where others read it: without its user, password and options, and
// with the host that go-redis takes where it has none.
func Name(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "Redis"
	}
	if u.Host == "" && u.Scheme != "unix" {
		u.Host = "localhost:6379"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}
