// Package remedy says what errors of Redis and of its client mean that an operator has to fix.
package remedy

import (
	"errors"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"
)

// Of returns what is wrong where Redis has failed with err, and what to do. The store's keys start with
// prefix, and have hash tags if the client spreads them over nodes.
func Of(err error, prefix string, hashTags bool) (what, do string) {
	text := err.Error()
	switch {
	case errors.Is(err, redis.ErrClosed):
		return "the Redis client is closed", "close it after the Limiter, once no calls are made any more"
	case redis.IsAuthError(err):
		return "Redis does not accept the credentials", "set the client's Username and Password"
	case isDenied(err):
		do = "grant it: ACL SETUSER <user> ~" + prefix +
			"* +@read +@write +@scripting +@connection +info +time"
		if hashTags {
			do += " +cluster|slots"
		}
		return "Redis denies the user what the store needs", do
	case strings.Contains(text, "all sentinels specified"): // go-redis's own words
		return "no Sentinel knows the master", "set MasterName, in a URL ?master_name=, " +
			"as in their `sentinel monitor`, and the addresses to those of Sentinels"
	case strings.Contains(text, "unknown command"):
		return "this Redis does not have a command that the store needs",
			"use Redis 5 or newer, with scripts; " +
				"for a Sentinel, create the client with redis.NewFailoverClient, in a URL ?master_name=NAME"
	case strings.Contains(text, "cluster support disabled"):
		return "the client is one of a cluster, which this Redis is not",
			"pass redisstore.New what redis.NewClient returns, or leave ?addr= out of the URL"
	case strings.Contains(text, "DB index is out of range"), strings.Contains(text, "SELECT is not allowed"):
		return "Redis has no database of the client's number",
			"set the client's DB, in a URL the number behind the host, to one that it has: 0, on a " +
				"cluster the only one"
	case strings.HasPrefix(text, "CROSSSLOT"):
		return "the keys of the call lie in different slots of the cluster",
			"acquire buckets with different roots one by one, and use a Prefix without '{'"
	}
	return "Redis refused the call", "check the client's configuration"
}

// transient is the codes of errors after which Redis has written nothing, and which pass by themselves or
// are fixed by an operator of Redis. A script reads all it needs before it writes, and Redis rejects its
// first write or none.
var transient = []string{
	"LOADING", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS", "OOM", "MISCONF", "BUSY",
	"MOVED", "ASK", "max number of clients reached",
}

// Passes reports whether the text of an answer, without ERR, is an error that passes by itself, and after
// which Redis has written nothing.
func Passes(text string) bool {
	return slices.ContainsFunc(transient, func(code string) bool {
		// Redis before 7 wraps the error of a script's command: "Error running script ...: -OOM command not
		// allowed ...".
		return strings.HasPrefix(text, code) || strings.Contains(text, ": -"+code+" ")
	})
}

// isDenied reports whether err says that the user does not have a right. For a command within a script the
// text depends on the version: the first of the two is that of Redis up to 7.0.
func isDenied(err error) bool {
	text := err.Error()
	return redis.IsPermissionError(err) || strings.Contains(text, "executing the script can't run") ||
		strings.Contains(text, "ACL failure in script")
}
