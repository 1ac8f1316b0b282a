package redisstore

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/inforce"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/window"
)

// planScenes are a limit of 60 tokens that refills, as stored, and what a script makes of it that refunds
// cost. The hash was last filled by version 9 of org-1's numbers, to 100 tokens.
var planScenes = []struct {
	stored  int64
	version int64
	of      string
	refund  int64
	want    string
}{
	{50, 5, "org-1", 200, "100 org-1"}, // by the fill
	{50, 9, "org-1", 200, "60 org-1"},
	{50, 5, "org-2", 200, "60 org-2"}, // not by the fill of another org's numbers
	{50, 5, "", 200, "60 org-0"},
	{500, 5, "org-2", -1, "59 org-2"},
	{500, inforce.Unknown, "org-2", -1, "499 org-2"}, // it keeps what it has
	{50, inforce.Unknown, "org-2", 200, "60 org-2"},
	{50, 5, "org-2@b", -1, "49 org-2@b"},
}

// playPlans returns what is wrong with a script of limits that have the numbers of plans.
func (s *server) playPlans(
	t *testing.T, client redis.UniversalClient, script string, limits ...bucket.Limit,
) string {
	t.Helper()
	ctx, keys := t.Context(), []string{s.prefix + "{x}0", s.prefix + "{x}1", s.prefix + "{x}2"}[:len(limits)]
	held := make([]bool, len(limits))
	has, calendars := make([]int, len(limits)), make([]*bucket.Calendar, len(limits))
	for i, l := range limits {
		has[i], held[i] = i, l.InFlight()
		if l.Windowed() {
			calendars[i] = &bucket.Calendar{Unit: bucket.FirstUse, Length: l.Period}
		}
	}
	for _, scene := range planScenes {
		now := client.Time(ctx).Val().UnixMilli()
		client.Del(ctx, keys...)
		client.HSet(ctx, keys[0], text.TokensField, scene.stored, text.SinceField, now,
			"filledBy", 9, "filledTo", 100, "filledAt", now, "filledOf", "org-1", text.OfField, "org-0")
		n := inforce.Numbers{Limits: limits, Version: scene.version, Of: scene.of}
		args := append([]any{len(limits), 1000}, window.Of(n, has, held, calendars, now).List...)
		args = append(args, "0", -scene.refund)
		for range limits[1:] {
			args = append(args, 1, 0)
		}
		if err := redis.NewScript(script).Run(ctx, client, keys, args...).Err(); err != nil {
			return err.Error()
		}
		hash := client.HGetAll(ctx, keys[0]).Val()
		tokens, _, _ := strings.Cut(hash[text.TokensField], ".")
		if got := tokens + " " + hash[text.OfField]; got != scene.want {
			return fmt.Sprintf("%+v: %s", scene, got)
		}
		for i, key := range keys[1:] {
			if got := client.HGet(ctx, key, text.OfField).Val(); !held[i+1] && got != scene.of {
				return fmt.Sprintf("%+v: limit %d has %q", scene, i+1, got)
			}
		}
	}
	return ""
}

// TestScriptsOfPlans: scripts record whose plan it is, and go by a fill only of the same entity's plan. By
// numbers that stand in for those of an unknown plan, they cut nothing off.
func TestScriptsOfPlans(t *testing.T) {
	s := newServer(t)
	for name, script := range scriptsOfPlans {
		if wrong := s.playPlans(t, s.client(t), script.text, script.limits...); wrong != "" {
			t.Errorf("%s: %s", name, wrong)
		}
	}
}

// scriptsOfPlans are those that serve resources with plans, with limits of each kind that they take.
var scriptsOfPlans = map[string]struct {
	text   string
	limits []bucket.Limit
}{
	"windows": {windowsScript, []bucket.Limit{*rpm(60)[0], bucket.InWindows(5, time.Hour)}},
	"holds":   {holdsScript, []bucket.Limit{*rpm(60)[0], bucket.InWindows(5, time.Hour), bucket.InFlight(5)}},
}

// TestScriptsOfPlansSpoilt is the control of TestScriptsOfPlans: it finds a script without one of its parts.
func TestScriptsOfPlansSpoilt(t *testing.T) {
	longform.NoRace(t, "controls, whose broken variants ship nowhere")
	s := newServer(t)
	for _, spoil := range []struct{ what, script, part, instead string }{
		{"whose fill it is", "", " and (bucket[6] or '') == of[k]", ""},
		{"what a bucket keeps", "", "burst[k] = math.max(burst[k], stored[k])", ""},
		{"a plan that is known", "", "if ARGV[at + 2] + 0 < 0 then", "if true then"},
		{"an id that has a @", "", "^([^@]+)@(.*)$", "^(.+)@(.*)$"},
		{"whose plan it is", "", "since[k], unpack(whose[k])", "since[k]"},
		{"whose plan it is in a window", "windows", "ends[k], unpack(whose[k])", "ends[k]"},
		{"whose plan it is in a window", "holds", "if of[k] ~= '' then", "if false then"},
	} {
		for name, script := range scriptsOfPlans {
			if spoil.script != "" && spoil.script != name {
				continue
			}
			spoilt := strings.Replace(script.text, spoil.part, spoil.instead, 1)
			if spoilt == script.text {
				t.Fatalf("%s, %s: nothing to spoil", name, spoil.what)
			}
			if s.playPlans(t, s.client(t), spoilt, script.limits...) == "" {
				t.Errorf("%s without %s: not noticed", name, spoil.what)
			}
		}
	}
}
