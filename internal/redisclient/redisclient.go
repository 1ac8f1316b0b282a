// Package redisclient makes the Redis client of our programs from a URL, as go-redis reads URLs: of a node, of what a Sentinel
// watches, or of a cluster. A password in the URL is in no error and in no name that it returns.
package redisclient

import (
	"context"
	"errors"
	"net/url"
	"regexp"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Forms says how URLs are written.
const Forms = "redis://[[user]:password@]host:port[/db], rediss:// for TLS, unix:///path/to/socket, " +
	"?master_name=NAME for a Sentinel, ?addr=host:port for more nodes of a cluster"

// New returns a client of the Redis at text. It asks a node whether it is one of a cluster, to read all of that: a node alone
// would leave out what the others have. A user who may not ask that is taken at the URL's word.
func New(ctx context.Context, text string) (redis.UniversalClient, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "redis" && u.Scheme != "rediss" && u.Scheme != "unix" { // what is wrong may be the password
		return nil, errors.New("that is no URL of a Redis: want " + Forms)
	}
	switch options := u.Query(); {
	case options.Has("master_name"):
		o, err := redis.ParseFailoverURL(text)
		if err != nil {
			return nil, refused(err)
		}
		o.DialerRetries = 1
		return redis.NewFailoverClient(o), nil
	case options.Has("addr"):
		return cluster(text)
	}
	o, err := redis.ParseURL(text)
	if err != nil {
		return nil, refused(err)
	}
	o.DialerRetries = 1 // go-redis repeats the command, which dials again
	node := redis.NewClient(o)
	info, err := node.Info(ctx, "cluster").Result()
	switch {
	case err != nil && !redis.IsPermissionError(err):
		return nil, errors.Join(err, node.Close())
	case u.Scheme == "unix" || !strings.Contains(info, "cluster_enabled:1"):
		return node, nil
	}
	if err := node.Close(); err != nil {
		return nil, err
	}
	return cluster(text)
}

// cluster returns a client of a cluster.
func cluster(text string) (redis.UniversalClient, error) {
	o, err := redis.ParseClusterURL(text)
	if err != nil {
		return nil, refused(err)
	}
	o.DialerRetries = 1
	return redis.NewClusterClient(o), nil
}

// refused is what go-redis says of a URL's path or options.
func refused(err error) error {
	return errors.New(Redact(strings.TrimPrefix(err.Error(), "redis: ")) + ": want " + Forms)
}

// Name returns what a URL may be called where others read it: without its user, password and options.
func Name(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "Redis"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// secret is what stands in a URL, or in its options, and is nobody's business. Up to the last '@' of a line: a password may have
// one too.
var secret = regexp.MustCompile(`((?:rediss?|unix):/*).*@|(password=)[^&\s"]*`)

// Redact takes passwords out of a text that may have a URL.
func Redact(text string) string { return secret.ReplaceAllString(text, "${1}${2}***") }
