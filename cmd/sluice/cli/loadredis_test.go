package cli_test

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2/server"

	"github.com/sluice-go/sluice/cmd/sluice/internal/tool/load"
)

// bucketKeys returns keys without that of the owner, which Check records and nothing deletes.
func bucketKeys(keys []string) []string {
	return slices.DeleteFunc(keys, func(key string) bool { return strings.HasSuffix(key, "#owner") })
}

// TestLoadRedis: on a Redis of one node and on a cluster, buckets under the prefix have lost as many tokens
// as the report says were admitted. A cleanup leaves none of these buckets.
func TestLoadRedis(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string) redises{"one": newRedis,
		"cluster": newCluster} {
		t.Run(name, func(t *testing.T) {
			r := start(t, demo)
			args := append([]string{"load", "--json", "--mix", "user:gpt-4", "--entities", "5", "--children", "2",
				"--calls", "700", "--duration", "5m", "--concurrency", "8"}, r.flags...)
			code, out, errs := command(t.Context(), args...)
			var s report
			if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
				t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
			}
			admitted := s.Outcomes[load.Admitted].Calls
			if s.Made != 700 || s.Lost != 0 || admitted != 500 || s.Outcomes[load.Denied].Calls != 200 ||
				s.Units != (load.Units{}) || s.Cost != nil {
				t.Errorf("5 users of 100 requests each: %+v", s)
			}
			var left int64
			users := 0
			for _, key := range bucketKeys(r.server.Keys()) {
				if !strings.Contains(key, "user-load-") && !strings.Contains(key, "project-load-") {
					t.Errorf("key %s", key)
				}
				if strings.Contains(key, ":rpm:") && strings.HasSuffix(key, "user-load-"+key[len(key)-1:]) {
					users++
					tokens, err := strconv.ParseFloat(r.server.HGet(key, "tokens"), 64)
					if err != nil {
						t.Fatal(err)
					}
					left += int64(tokens)
				}
			}
			if users != 5 || left != 0 {
				t.Errorf("%d users have %d requests left of %v", users, left, r.server.Keys())
			}
			code, out, errs = command(t.Context(), append(args, "--cleanup")...)
			if code != 0 || len(bucketKeys(r.server.Keys())) != 0 || !strings.Contains(out, `"buckets_deleted": 8`) {
				t.Errorf("exit code %d; left are %v\n%s%s", code, r.server.Keys(), out, errs)
			}
		})
	}
}

// TestLoadRedisInterrupted: after Ctrl-C, calls under way are finished, and what was charged is cleaned up.
func TestLoadRedisInterrupted(t *testing.T) {
	r := newRedis(t, demo)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var scripts atomic.Int64
	r.server.Server().SetPreHook(func(_ *server.Peer, command string, _ ...string) bool {
		if strings.HasPrefix(command, "EVAL") && scripts.Add(1) == 200 { // one of those that are under way
			cancel()
		}
		return false
	})
	code, out, errs := command(ctx, append([]string{"load", "--json", "--duration", "1m", "--concurrency", "8",
		"--settle", "tpm=3", "--cleanup"}, r.flags...)...)
	var s report
	if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if s.Ended != load.EndedEarly || len(s.Failures) != 0 || len(bucketKeys(r.server.Keys())) != 0 {
		t.Errorf("ended by %s, failures %+v, %d keys left\n%s", s.Ended, s.Failures, len(r.server.Keys()), errs)
	}
}

// TestLoadRedisElsewhere: nothing is asked of a Redis on another machine unless its prefix is for tests, or
// --yes is there. Its password is not shown.
func TestLoadRedisElsewhere(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel() // nobody is to be looked for
	refused := func(prefix string) string {
		return "sluice: redis://redis.example:6379, prefix " + prefix +
			" is not known to be for tests: it is on another machine, and its prefix has none of test, "
	}
	for flags, want := range map[string]string{
		"": refused("sluice:"), "--prefix payload:": refused("payload:"),
		"--prefix load:": "sluice: context canceled", "--yes": "sluice: context canceled",
		"--in-process": "sluice: --in-process and --redis name different places: pass one of them; ",
	} {
		args := append(strings.Fields("load --redis redis://:secret@redis.example:6379 --file "+demo),
			strings.Fields(flags)...)
		code, _, errs := command(ended, args...)
		if code == 0 || !hasFacts(errs, want) || strings.Contains(errs, "secret") {
			t.Errorf("%s: exit code %d\n%s\nwant %s", flags, code, errs, want)
		}
	}
}
