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
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
)

// heldKey is a key of a script whose limit counts holds: what is stored of it, and its arguments.
type heldKey struct {
	windowKey // used, end and boundaries of a windowed one

	inFlight bool
	cells    [2]int64
	epoch    int64 // 0 for a hash from before holds
}

// heldCall is one call of a script, by key: of a settle, cost is what it adds to charges.
type heldCall struct {
	fit     string
	cost    []int64
	charges [][]bucket.Charge
}

// heldScene is what a script meets at an instant.
type heldScene struct {
	now   int64
	keys  []heldKey
	calls []heldCall
}

// heldScenes draws scenes around the epoch that starts at t0.
func heldScenes() *rapid.Generator[heldScene] {
	return rapid.Custom(func(t *rapid.T) heldScene {
		s := heldScene{now: t0 + rapid.SampledFrom([]int64{-1, 0, 1, 30_000, 59_999}).Draw(t, "now")}
		for range rapid.IntRange(1, 2).Draw(t, "keys") {
			s.keys = append(s.keys, drawHeldKey(t, s.now))
		}
		for range rapid.IntRange(0, 4).Draw(t, "calls") {
			c := heldCall{fit: rapid.SampledFrom([]string{"0", "0", "1", "1", "2"}).Draw(t, "call")}
			for _, k := range s.keys {
				cost, charges := c.draw(t, k, s.now)
				c.cost, c.charges = append(c.cost, cost), append(c.charges, charges)
			}
			s.calls = append(s.calls, c)
		}
		return s
	})
}

// drawHeldKey draws a key at now.
func drawHeldKey(t *rapid.T, now int64) heldKey {
	k := heldKey{inFlight: rapid.Bool().Draw(t, "in flight")}
	k.there, k.burst = rapid.IntRange(0, 3).Draw(t, "there") > 0, 20*token
	if k.there {
		k.epoch = bucket.Epoch(now) + rapid.SampledFrom([]int64{0, 0, 0, -1, -2, 1, 3}).Draw(t, "epoch")
		for i := range k.cells {
			k.cells[i] = token * rapid.SampledFrom([]int64{0, 1, 3, 8, 12}).Draw(t, "cell")
		}
	}
	if k.inFlight {
		return k
	}
	k.half = 600_000
	k.after, k.boundaries = t0-hour, [3]int64{t0 + 5, t0 + hour, t0 + 2*hour}
	if rapid.IntRange(0, 2).Draw(t, "first use") == 0 {
		k.half, k.length = 60_000, 600_000
	}
	if k.there {
		k.end = now + rapid.SampledFrom([]int64{-600_000, -1, 0, 1, 500_000, 500_000, 100 * day}).Draw(t, "end")
		k.used = token * rapid.SampledFrom([]int64{0, 1, 7, 15}).Draw(t, "used")
		if rapid.IntRange(0, 3).Draw(t, "before holds") == 0 {
			k.epoch, k.cells = 0, [2]int64{}
		}
	}
	return k
}

// draw draws the cost of a call at now for k, and the charges that it settles or extends.
func (c *heldCall) draw(t *rapid.T, k heldKey, now int64) (cost int64, charges []bucket.Charge) {
	cost = token * rapid.SampledFrom([]int64{0, 1, 5, 20}).Draw(t, "cost")
	if c.fit == "1" {
		return cost, nil
	}
	most := 3
	if c.fit == "2" {
		most = 1
	}
	all := int64(0)
	for range rapid.IntRange(0, most).Draw(t, "charges") {
		taken, end := token*rapid.SampledFrom([]int64{1, 2, 5, 8, 0}).Draw(t, "taken"), int64(0)
		epoch := max(k.epoch, bucket.Epoch(now)) + rapid.SampledFrom([]int64{0, 1, 0, -1, -2, 2}).Draw(t, "of")
		switch rapid.IntRange(0, 7).Draw(t, "kind") {
		case 0:
			epoch = bucket.Lost
		case 1:
			epoch = 0
		}
		if !k.inFlight {
			end = rapid.SampledFrom([]int64{k.end, k.end, k.end, 1}).Draw(t, "window")
		}
		all += taken
		charges = append(charges, bucket.Charge{Cost: []int64{taken}, Ends: []int64{end}, Epochs: []int64{epoch}})
	}
	switch {
	case c.fit == "2":
		cost = 0
	case k.inFlight || rapid.Bool().Draw(t, "gives back"):
		cost = -rapid.SampledFrom([]int64{0, all / 2, all}).Draw(t, "given back")
	}
	return cost, charges
}

// balance returns k as calls find it at now, and what a sweep gives back.
func (k heldKey) balance(now int64) (b bucket.Balance, swept int64) {
	b = bucket.Balance{Limit: bucket.InWindows(20, 24*60*60*1e9), Epoch: k.epoch, Cells: k.cells, Ends: k.end}
	b.Tokens = b.Burst - k.used - k.cells[0] - k.cells[1]
	switch {
	case k.inFlight:
		b.Limit, b.Ends = bucket.InFlight(20), 0
	case b.Over(now):
		b.Tokens, b.Cells = b.Burst, [2]int64{}
	}
	if k.epoch == 0 {
		later := int64(0)
		if k.there {
			later = bucket.NewRing
		}
		return b.Apply(bucket.NewHold(0, later, now)), 0
	}
	h, swept := b.Sweep(0, bucket.NoMoves, false, now)
	b.Tokens += swept
	return b.Apply(h), swept
}

// taking is the epoch of what is taken of b at now.
func taking(b bucket.Balance, now int64) int64 { return max(bucket.Epoch(now)+1, b.Epoch) }

// out takes what there is of n tokens out of the cell of an epoch of b.
func out(b *bucket.Balance, epoch, n int64) {
	if epoch > b.Epoch+1 { // never taken, as far as b knows
		return
	}
	n = min(n, b.Cells[epoch&1])
	b.Cells[epoch&1] -= n
	b.Tokens += n
}

// used is the tokens of b that are gone until its window ends.
func used(b bucket.Balance) int64 { return b.Burst - b.Tokens - b.Cells[0] - b.Cells[1] }

// settle gives back to b what bucket.EndOf says, or charges it: a charge after the other, the newest first.
func settle(b bucket.Balance, cost int64, charges []bucket.Charge, now int64) bucket.Balance {
	left := max(0, -cost)
	for _, c := range slices.Backward(charges) {
		part := min(left, c.Cost[0])
		left -= part
		img := &bucket.Image{Balances: []bucket.Balance{b}}
		lapsed, moves := bucket.EndOf(img, []int64{-part}, []bucket.Charge{c}, now)
		change, ended := part, moves[0].Out[0]+moves[0].Out[1]
		if lapsed != nil {
			change -= lapsed[0]
		}
		before := b
		out(&b, c.Epochs[0], ended)
		b.Tokens += change - ended
		if used(b) < 0 && used(b) < used(before) {
			b.Tokens += used(b)
		}
	}
	return b
}

// extend is bucket.Extend for one key, of which a fail-over may have lost holds.
func extend(k heldKey, b bucket.Balance, c bucket.Charge, now int64) (bucket.Balance, int64) {
	img := &bucket.Image{Balances: []bucket.Balance{b}}
	if !k.there {
		img = nil
	}
	moves, until := bucket.Extend(img, c, now)
	if in := moves[0].In; in != [2]int64{} {
		out(&b, c.Epochs[0], c.Cost[0])
		b.Cells[0], b.Cells[1] = b.Cells[0]+in[0], b.Cells[1]+in[1]
		b.Tokens -= in[0] + in[1]
	}
	return b, until[0]
}

// want returns the reply to a scene, and what it leaves: the definition of what a script for holds does.
func (s heldScene) want() (reply []int64, left string) {
	var now, before []bucket.Balance
	var swept []int64
	keys := slices.Clone(s.keys)
	for i, k := range keys {
		if !k.inFlight {
			keys[i].windowKey = k.shortened(s.now)
		}
		b, back := keys[i].balance(s.now)
		if !k.inFlight && b.Over(s.now) {
			back = 0
		}
		now, swept = append(now, b), append(swept, back)
	}
	before = slices.Clone(now)
	var outcomes []int64
	for _, c := range s.calls {
		next, outcome, ok := s.call(c, keys, slices.Clone(now))
		if !ok {
			return []int64{s.now}, s.left(nil, nil)
		}
		now, outcomes = next, append(outcomes, outcome...)
	}
	reply = []int64{s.now}
	for i, b := range now {
		if b.Tokens == before[i].Tokens && b.Cells == before[i].Cells && b.Ends == s.keys[i].end {
			swept[i] = 0
		}
		reply = append(reply, b.Tokens, b.Ends, b.Cells[0], b.Cells[1], b.Epoch, taking(b, s.now), swept[i])
	}
	return append(reply, outcomes...), s.left(before, now)
}

// call returns what a call makes of balances, and the reply to it. ok is false without a boundary.
func (s heldScene) call(
	c heldCall, keys []heldKey, now []bucket.Balance,
) (after []bucket.Balance, outcome []int64, ok bool) {
	refusal, refused := []int64{1}, false
	for i, b := range now {
		switch wait := int64(0); {
		case c.fit != "1" || c.cost[i] == 0 || c.cost[i] <= b.Tokens:
			refusal = append(refusal, wait)
		default:
			refusal, refused = append(refusal, bucket.RetryAfter(b, 0, s.now, c.cost[i]).Milliseconds()), true
		}
	}
	if refused {
		return now, refusal, true
	}
	reply := []int64{0}
	for i := range now {
		b := &now[i]
		if c.fit == "2" {
			epoch := int64(0)
			if holds := c.charges[i]; len(holds) > 0 && holds[0].Cost[0] > 0 && holds[0].Epochs[0] > 0 {
				*b, epoch = extend(s.keys[i], *b, holds[0], s.now)
			}
			reply = append(reply, epoch)
			continue
		}
		*b = settle(*b, c.cost[i], c.charges[i], s.now)
		if c.cost[i] <= 0 || keys[i].inFlight && c.fit == "0" {
			continue
		}
		if !keys[i].inFlight && b.Over(s.now) {
			k := keys[i].windowKey
			if b.Ends, ok = k.opens(s.now); !ok {
				return nil, nil, false
			}
		}
		if b.Tokens -= c.cost[i]; c.fit == "1" {
			b.Cells[taking(*b, s.now)&1] += c.cost[i]
		}
	}
	return now, reply, true
}

// left writes what there is at keys. One that s has changed lives until after its last hold, and for half a
// window after its end.
func (s heldScene) left(before, now []bucket.Balance) string {
	var text strings.Builder
	for i, k := range s.keys {
		switch {
		case before != nil && (now[i].Tokens != before[i].Tokens || now[i].Cells != before[i].Cells ||
			now[i].Ends != k.end):
			b := now[i]
			life, of := (b.Epoch+2)*bucket.EpochLength, []any{nil, nil}
			if !k.inFlight {
				life, of = max(life, b.Ends+k.half), []any{used(b), b.Ends}
			}
			fmt.Fprintln(&text, append(of, b.Cells[0], b.Cells[1], b.Epoch, life)...)
		case !k.there:
			fmt.Fprintln(&text, "none")
		default:
			fmt.Fprintln(&text, k.fields()...)
		}
	}
	return text.String()
}

// fields returns the fields of k's hash as HMGET has them.
func (k heldKey) fields() []any {
	of := []any{nil, nil, nil, nil, nil, nil}
	if !k.inFlight {
		of[0], of[1] = k.used, k.end
	}
	if k.epoch > 0 {
		of[2], of[3], of[4] = k.cells[0], k.cells[1], k.epoch
	}
	return of
}

// args returns what ARGV has of k in front of the calls.
func (k heldKey) args() []any {
	if k.inFlight {
		return []any{k.burst, -1}
	}
	return []any{k.burst, -2, k.half, k.length, k.after, k.boundaries[0], k.boundaries[1], k.boundaries[2]}
}

// args returns what ARGV has of a call, as the store writes it.
func (c heldCall) args(keys []heldKey) []any {
	args := []any{c.fit}
	for i, k := range keys {
		cost, back := c.cost[i], []window.GiveBack(nil)
		switch calendars := []*bucket.Calendar{{}}; {
		case c.fit == "2" && len(c.charges[i]) > 0:
			back = window.Holds(c.charges[i][0])
		case c.fit == "0":
			if k.inFlight {
				calendars = nil
			}
			rest, of := window.Split(c.charges[i], calendars, []bool{true}, []int64{cost})
			cost, back = rest[0], of
		}
		args = window.Append(args, 0, true, cost, back)
	}
	return args
}

// heldDiffers is differs for a scene of keys with holds.
func (s *server) heldDiffers(t testing.TB, client *redis.Client, script string, sc heldScene) string {
	t.Helper()
	clock := fmt.Sprintf("{'%d', '%d'}", sc.now/1000, sc.now%1000*1000)
	script = strings.NewReplacer("redis.call('TIME')", clock,
		"'PEXPIREAT', KEYS[k],", "'HSET', KEYS[k], 'life',").Replace(script)
	keys, args := []string(nil), []any{len(sc.keys), 0}
	for i, k := range sc.keys {
		key := s.prefix + strconv.Itoa(i)
		client.Del(t.Context(), key)
		keys = append(keys, key)
		for j, field := range []string{"used", "end", "h0", "h1", "e"} {
			if of := k.fields()[j]; k.there && of != nil {
				client.HSet(t.Context(), key, field, of)
			}
		}
		args = append(args, k.args()...)
	}
	for _, c := range sc.calls {
		args = append(args, c.args(sc.keys)...)
	}
	reply, err := client.Eval(t.Context(), script, keys, args...).Int64Slice()
	if err != nil {
		return err.Error()
	}
	var left strings.Builder
	for _, key := range keys {
		hash := client.HMGet(t.Context(), key, "used", "end", "h0", "h1", "e", "life").Val()
		if hash[0] == nil && hash[4] == nil {
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

// TestHoldsModel holds the script for holds to its definition, which is package bucket's.
func TestHoldsModel(t *testing.T) {
	longform.NoRace(t, "one goroutine calls, to compare a script with its definition")
	s := newServer(t)
	client := s.client(t)
	rapid.Check(t, func(rt *rapid.T) {
		if diff := s.heldDiffers(t, client, holdsScript, heldScenes().Draw(rt, "scene")); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestHoldsOfWindows: where no limit counts holds, the script for holds is that for windows.
func TestHoldsOfWindows(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	rapid.Check(t, func(rt *rapid.T) {
		if diff := s.differs(t, client, holdsScript, windowScenes().Draw(rt, "scene")); diff != "" {
			rt.Fatal(diff)
		}
	})
}

// TestHoldsModelSpoilt is the control of TestHoldsModel: it finds a script without one of its parts.
func TestHoldsModelSpoilt(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	s := newServer(t)
	client := s.client(t)
	for what, part := range map[string][2]string{
		"epoch that ends next":    {"math.floor(now / 60000) + 1", "math.floor(now / 60000)"},
		"sweep":                   {"    low[k] = math.max(epoch, e)\n", "    low[k] = e\n"},
		"epochs of a later one":   {"math.max(epoch, e)", "epoch"},
		"epoch of a cell":         {"e + (e + i) % 2 < low[k]", "e < low[k]"},
		"swept tokens":            {"swept[k] = swept[k] + held", "swept[k] = swept[k]"},
		"swept by a write alone":  {"      swept[k] = 0\n    end\n    reply", "    end\n    reply"},
		"limit from before holds": {"low[k] = epoch + 3", "low[k] = epoch"},
		"missing bucket":          {"missing[k] = not", "missing[k] = false and not"},
		"epoch of what is taken":  {"last[k] = math.max(epoch + 1, low[k])", "last[k] = epoch + 1"},
		"holds of a window that is over": {"used[k], h[k], swept[k] = 0, {[0] = 0, 0}, 0\n        granted",
			"used[k] = 0\n        granted"},
		"held in the balance":         {" - used[k] - h[k][0] - h[k][1]", " - used[k] - h[k][0]"},
		"charge of its window":        {"ARGV[i + 1] + 0 == ends[k] and", "true and"},
		"charge of an open window":    {"(not window[k] or now < ends[k])", "true"},
		"return in its epoch":         {"of >= low[k] and of", "of"},
		"return of what there is":     {"math.max(0, h[k][of % 2] - held)", "h[k][of % 2] - held"},
		"used by a settle":            {"used[k] - ARGV[i], most", "used[k], most"},
		"give-back of what was used":  {"math.max(0 - granted[k], math.min(", "math.max(-1e9, math.min("},
		"call that holds":             {"if low[k] and fit == '1' then", "if low[k] then"},
		"charge that is used":         {"elseif window[k] then\n      used", "elseif false then\n      used"},
		"extension that is over":      {"missing[k] or of < low[k] then", "missing[k] then"},
		"extension of another window": {"if not current(k, i) and not missing[k] then", "if false then"},
		"extension that is not due":   {"elseif of >= last[k] then", "elseif false then"},
		"extension of what there was": {"  release(k, of, held)\n  h[k]", "  h[k]"},
		"extension":                   {"h[k][last[k] % 2] = h[k][last[k] % 2] + held", ""},
		"refusal of a full limit":     {"tokens[k] + 1e-9 < cost[k]", "false"},
		"balance of later calls":      {"  tokens[k] = balance(k)\n  return true", "  return true"},
		"write that changes nothing":  {"if opened[k] or used[k] ~=", "if true or used[k] ~="},
		"write of what is used":       {"used[k] ~= before[k][1] or ", ""},
		"write of the even cell":      {" or h0 ~= before[k][2]", ""},
		"write of the odd cell":       {" or h1 ~= before[k][3]", ""},
		"life":                        {"(low[k] + 2) * 60000", "(low[k] + 1) * 60000"},
		"life of a window":            {"life = math.max(life, ends[k] + ARGV[window[k]])", "life = life"},
		"hint of a wait":              {"wait = 1000", "wait = 999"},
		"wait for a window":           {"math.max(1, ends[k] - now)", "1000"},
		"epoch in the reply":          {"low[k], last[k], swept[k]}", "low[k], low[k], swept[k]}"},
		"outcome of an extension":     {"(each.refused or each.extended)", "each.refused"},
	} {
		spoilt, caught := strings.Replace(holdsScript, part[0], part[1], 1), false
		if spoilt == holdsScript {
			t.Fatalf("%s: nothing to spoil in\n%s", what, holdsScript)
		}
		for seed := 0; seed < 2000 && !caught; seed++ {
			caught = s.heldDiffers(t, client, spoilt, heldScenes().Example(seed)) != ""
		}
		if !caught {
			t.Errorf("%s: a script without is not found", what)
		}
	}
}
