package redisstore

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
)

// windowKey is a windowed key of a script: what is stored of it, and its arguments.
type windowKey struct {
	there       bool
	used, end   int64
	granted     int64 // in the window that is open, or was; used is lower by it
	burst, half int64
	length      int64
	after       int64
	boundaries  [3]int64
}

// windowCall is one call of a script, by key.
type windowCall struct {
	fit  bool
	cost []int64
	back [][]window.GiveBack
}

// windowScene is what a script meets at an instant.
type windowScene struct {
	now   int64
	keys  []windowKey
	calls []windowCall
}

// windowScenes draws scenes. Most instants are around each other.
func windowScenes() *rapid.Generator[windowScene] {
	const half = 1000
	near := rapid.SampledFrom([]int64{-3 * half, -2 * half, -half - 1, -half, -half + 1, -1, 0, 1, half - 1,
		half, half + 1, 2 * half, 3 * half})
	return rapid.Custom(func(t *rapid.T) windowScene {
		s := windowScene{now: t0 + near.Draw(t, "now")}
		for range rapid.IntRange(1, 3).Draw(t, "keys") {
			k := windowKey{there: rapid.Bool().Draw(t, "there"), half: half}
			k.burst = rapid.SampledFrom([]int64{1, 100, 1e15}).Draw(t, "burst")
			if k.there {
				k.used = rapid.SampledFrom([]int64{0, 1, k.burst / 2, k.burst, k.burst + 7}).Draw(t, "used")
				k.end = t0 + near.Draw(t, "end")
				if rapid.IntRange(0, 7).Draw(t, "too long") == 0 {
					k.end += rapid.SampledFrom([]int64{day, 2 * day}).Draw(t, "by") // about as long as may be, or too long
				}
				if k.granted = rapid.SampledFrom([]int64{0, 0, 7, 60}).Draw(t, "granted"); k.granted > 0 {
					k.used -= k.granted // what is left of a grant may be above the burst
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "first use") == 0 {
				k.length = half
			}
			k.after = t0 + near.Draw(t, "after")
			at := k.after
			for i := range k.boundaries {
				at += rapid.SampledFrom([]int64{1, half, 2 * half, 5 * half}).Draw(t, "boundary")
				k.boundaries[i] = at
			}
			s.keys = append(s.keys, k)
		}
		for range rapid.IntRange(0, 3).Draw(t, "calls") {
			c := windowCall{fit: rapid.IntRange(0, 2).Draw(t, "fit") > 0}
			for _, k := range s.keys {
				costs := []int64{0, 0, 1, k.burst / 2, k.burst}
				if !c.fit { // the store sends no call that could never fit
					costs = append(costs, 8e15)
				}
				c.cost = append(c.cost, rapid.SampledFrom(costs).Draw(t, "cost"))
				var back []window.GiveBack
				for range rapid.IntRange(0, 2).Draw(t, "give-backs") {
					back = append(back, window.GiveBack{
						Amount: rapid.SampledFrom([]int64{1, 50, 2e15}).Draw(t, "amount"),
						Ends:   rapid.SampledFrom([]int64{k.end, k.end, k.boundaries[0], 1}).Draw(t, "of"),
					})
				}
				c.back = append(c.back, back)
			}
			s.calls = append(s.calls, c)
		}
		return s
	})
}

// stored returns what granted has as text, nil if the field is not there.
func (k *windowKey) stored() any {
	if k.granted == 0 {
		return nil
	}
	return k.granted
}

// opens returns the end of the window of k that opens at now; false if the call does not have it.
func (k *windowKey) opens(now int64) (int64, bool) {
	if k.length > 0 {
		return now + k.length, true
	}
	from := now
	if k.end > 0 {
		from = max(now, k.end+k.half)
	}
	for _, at := range k.boundaries {
		if at > from {
			return at, from >= k.after
		}
	}
	return 0, false
}

const day = 86_400_000

// shortened returns k at now with the end of a shorter window, if the one of k is too long.
func (k windowKey) shortened(now int64) windowKey {
	switch {
	case k.length > 0 && k.end > now+2*k.length:
		k.end = now + k.length
	case k.length == 0 && k.end > now+4*k.half+day && now >= k.after:
		for _, at := range k.boundaries {
			if at > now {
				k.end = at
				break
			}
		}
	}
	return k
}

// want returns the reply to a scene, and what it leaves: the definition of what a script for windows does.
func (s windowScene) want() (reply []int64, left string) {
	keys := slices.Clone(s.keys)
	for i, k := range keys {
		keys[i] = k.shortened(s.now)
	}
	var outcomes []int64
	for _, c := range s.calls {
		waits, refused := []int64{1}, false
		for i, k := range keys {
			free, wait := k.burst, int64(0)
			if s.now < k.end {
				free -= k.used
			}
			if c.fit && c.cost[i] > 0 && c.cost[i] > free {
				refused, wait = true, k.end-s.now
			}
			waits = append(waits, wait)
		}
		if refused {
			outcomes = append(outcomes, waits...)
			continue
		}
		outcomes = append(outcomes, 0)
		for i := range keys {
			k := &keys[i]
			for _, b := range c.back[i] {
				if b.Ends == k.end && s.now < k.end {
					k.used = max(-k.granted, k.used-b.Amount)
				}
			}
			if c.cost[i] == 0 {
				continue
			}
			if s.now >= k.end {
				end, ok := k.opens(s.now)
				if !ok {
					return []int64{s.now}, s.left(s.keys)
				}
				k.used, k.end, k.granted = 0, end, 0
			}
			k.used, k.there = min(k.used+c.cost[i], 1<<53-1), true
		}
	}
	reply = []int64{s.now}
	for _, k := range keys {
		free := k.burst
		if s.now < k.end {
			free -= k.used
		}
		reply = append(reply, free, k.end)
	}
	return append(reply, outcomes...), s.left(keys)
}

// left writes what there is at keys. Those that s has changed live for half a window after their end.
func (s windowScene) left(keys []windowKey) string {
	var b strings.Builder
	for i, k := range keys {
		switch {
		case !k.there:
			fmt.Fprintln(&b, "none")
		case k == s.keys[i]:
			fmt.Fprintln(&b, k.used, k.end, nil, k.stored())
		default:
			fmt.Fprintln(&b, k.used, k.end, k.end+k.half, k.stored())
		}
	}
	return b.String()
}

// differs plays a scene on a script, and returns where that is not as it is to be, "" if nowhere. A hash's
// life stands in it.
func (s *server) differs(t testing.TB, client *redis.Client, script string, sc windowScene) string {
	t.Helper()
	clock := fmt.Sprintf("{'%d', '%d'}", sc.now/1000, sc.now%1000*1000)
	script = strings.NewReplacer("redis.call('TIME')", clock,
		"'PEXPIREAT', KEYS[k],", "'HSET', KEYS[k], 'life',").Replace(script)
	keys, args, pipe := []string(nil), []any{len(sc.keys), 0}, client.Pipeline()
	for i, k := range sc.keys {
		key := s.prefix + strconv.Itoa(i)
		pipe.Del(t.Context(), key)
		if keys = append(keys, key); k.there {
			pipe.HSet(t.Context(), key, "used", k.used, "end", k.end)
			if k.granted > 0 {
				pipe.HSet(t.Context(), key, "granted", k.granted)
			}
		}
		args = append(args, k.burst, 0, k.half, k.length, k.after)
		for _, at := range k.boundaries {
			args = append(args, at)
		}
	}
	for _, c := range sc.calls {
		fit := "0"
		if c.fit {
			fit = "1"
		}
		args = append(args, fit)
		for i := range sc.keys {
			args = window.Append(args, 0, false, c.cost[i], c.back[i])
		}
	}
	replied := pipe.Eval(t.Context(), script, keys, args...)
	hashes := make([]*redis.SliceCmd, len(keys))
	for i, key := range keys {
		hashes[i] = pipe.HMGet(t.Context(), key, "used", "end", "life", "granted")
	}
	_, _ = pipe.Exec(t.Context()) // the commands have its errors
	reply, err := replied.Int64Slice()
	if err != nil {
		return err.Error()
	}
	var left strings.Builder
	for _, cmd := range hashes {
		if hash := cmd.Val(); hash[0] == nil {
			fmt.Fprintln(&left, "none")
		} else {
			fmt.Fprintln(&left, hash...)
		}
	}
	if want, wantLeft := sc.want(); !slices.Equal(reply, want) || left.String() != wantLeft {
		return fmt.Sprintf("%+v\nreplies %d, want %d\nleaves\n%swant\n%s", sc, reply, want, &left, wantLeft)
	}
	return ""
}

// TestWindowsModel holds the script for windows to its definition.
func TestWindowsModel(t *testing.T) {
	longform.NoRace(t, "one goroutine calls, to compare scripts with their definition")
	s := newServer(t)
	client := s.client(t)
	rapid.Check(t, func(rt *rapid.T) {
		if diff := s.differs(t, client, windowsScript, windowScenes().Draw(rt, "scene")); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestWindowsModelSpoilt is the control of TestWindowsModel: it finds a script without one of its parts.
func TestWindowsModelSpoilt(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	s := newServer(t)
	client := s.client(t)
	for what, part := range map[string][2]string{
		"half":                           {"ends[k] + ARGV[w])", "0)"},
		"first boundary":                 {"after < ARGV[w + 2] + 0", "false"},
		"boundary that is still to come": {"ARGV[i] + 0 > after", "true"},
		"first use":                      {"if ARGV[w + 1] + 0 > 0 then", "if false then"},
		"give-back of its window":        {"if ARGV[i + 1] + 0 == ends[k] then", "if true then"},
		"give-back of what was used":     {"math.min(tokens[k] + ARGV[i], top[k])", "tokens[k] + ARGV[i]"},
		"call that asks nothing":         {"if cost > 0 then", "if true then"},
		"grant that is given back":       {"burst[k] + (bucket[3] or 0)", "burst[k]"},
		"grant of the window before":     {"      if stale[k] then", "      if false then"},
		"end that decides":               {"if now < ends[k] then", "if true then"},
		"end of the window":              {"if now >= ends[k] then", "if now > ends[k] then"},
		"debt":                           {"if fit == '1' and", "if"},
		"exact integers":                 {"9007199254740991", "1e300"},
		"call without its boundary":      {"if not to then", "if false then"},
		"nothing charged then":           {"return {now}", "break"},
		"write that changes nothing":     {"if opened[k] or tokens[k] ~= before[k] then", "if true then"},
		"window without a charge before": {"opened[k] or ", ""},
		"life":                           {"ends[k] + ARGV[window[k]])", "ends[k])"},
		"window that is too long":        {"    shorten(k)\n", ""},
		"end of a shortened window":      {"if ARGV[i] + 0 > now then", "if true then"},
		"shortened window by its time":   {"elseif now >= ARGV[w + 2] + 0 then", "else"},
		"wait":                           {"math.max(1, ends[k] - now)", "ends[k]"},
		"burst of the call":              {"'used', burst[k] - tokens[k]", "'used', tokens[k]"},
	} {
		spoilt, caught := strings.Replace(windowsScript, part[0], part[1], 1), false
		if spoilt == windowsScript {
			t.Fatalf("%s: nothing to spoil in\n%s", what, windowsScript)
		}
		for seed := 0; seed < 2_000 && !caught; seed++ {
			caught = s.differs(t, client, spoilt, windowScenes().Example(seed)) != ""
		}
		if !caught {
			t.Errorf("%s: a script without is not found", what)
		}
	}
}
