package redistest

import (
	"context"
	"crypto/sha1" //nolint:gosec // as Redis names scripts
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
)

// moved is a hook of a client of a server, whose clock cannot be set. The client's scripts see the time of
// another clock: their redis.call knows it. The server runs what is left of a script, and of all others.
type moved struct {
	now func() time.Time

	mu    sync.Mutex
	texts map[string]string // of scripts, by their hashes
}

// prelude is what comes before a script: seconds, microseconds and milliseconds are those of the clock.
const prelude = `local real = redis local redis = setmetatable({call = function(name, ...) ` +
	`if name == 'TIME' then return {'%d', '%d'} end ` +
	`if name == 'PEXPIREAT' then local key, at = ... return real.call('PEXPIRE', key, at - %d) end ` +
	`return real.call(name, ...) end}, {__index = real}) `

// unloaded is a server's reply to the hash of a script that it does not have.
type unloaded struct{}

func (unloaded) Error() string { return "NOSCRIPT No matching script. Please use EVAL." }
func (unloaded) RedisError()   {}

// DialHook implements redis.Hook.
func (*moved) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (m *moved) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if err := m.rewrite(cmd); err != nil {
			return err
		}
		err := next(ctx, cmd)
		if clock, ok := cmd.(*redis.TimeCmd); ok && err == nil {
			clock.SetVal(m.now())
		}
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (m *moved) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		var first error
		var known []redis.Cmder
		for _, cmd := range cmds {
			if err := m.rewrite(cmd); err == nil {
				known = append(known, cmd)
			} else if first == nil {
				first = err
			}
		}
		if len(known) > 0 {
			if err := next(ctx, known); err != nil {
				return err
			}
		}
		return first
	}
}

// rewrite has a script that is called see m's time. It fails cmd if m does not know the script's text.
func (m *moved) rewrite(cmd redis.Cmder) error {
	args := cmd.Args()
	m.mu.Lock()
	defer m.mu.Unlock()
	switch cmd.Name() {
	case "script": // such as SCRIPT FLUSH
		clear(m.texts)
		return nil
	case "eval":
		text := args[1].(string)
		sum := sha1.Sum([]byte(text)) //nolint:gosec // as Redis names scripts
		m.texts[hex.EncodeToString(sum[:])] = text
	case "evalsha":
		text, ok := m.texts[args[1].(string)]
		if !ok {
			cmd.SetErr(unloaded{})
			return unloaded{}
		}
		args[1] = text
	default:
		return nil
	}
	now := m.now()
	seen := fmt.Sprintf(prelude, now.Unix(), now.Nanosecond()/1000, now.UnixMilli())
	args[0], args[1] = "eval", seen+args[1].(string)
	return nil
}
