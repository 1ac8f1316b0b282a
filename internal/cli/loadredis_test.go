package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/cli"
	"github.com/sluice-go/sluice/internal/load"
	"time"
)

// TestLoadRedis: on Redis, of one node and of a cluster, as many tokens are gone as the report says were admitted, in buckets under
// the prefix, and a cleanup leaves none of them.
func TestLoadRedis(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string) redises{"one": newRedis, "cluster": newCluster} {
		t.Run(name, func(t *testing.T) {
			r := start(t, demo)
			args := append([]string{"load", "--json", "--mix", "user:gpt-4", "--entities", "5", "--children", "2", "--calls", "700", "--concurrency", "8"}, r.flags...)
			code, out, errs := command(t.Context(), args...)
			var s report
			if err := json.Unmarshal([]byte(out), &s); err != nil || code != 0 {
				t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
			}
			admitted := s.Outcomes[load.Admitted].Calls
			if s.Made != 700 || s.Lost != 0 || admitted != 500 || s.Outcomes[load.Denied].Calls != 200 || s.Units != (load.Units{}) || s.Cost != nil {
				t.Errorf("5 users of 100 requests each: %+v", s)
			}
			var left int64
			users := 0
			for _, key := range r.server.Keys() {
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
			if code != 0 || len(r.server.Keys()) != 0 || !strings.Contains(out, `"buckets_deleted": 8`) {
				t.Errorf("exit code %d; left are %v\n%s%s", code, r.server.Keys(), out, errs)
			}
		})
	}
}

// TestLoadRedisElsewhere: a Redis of somebody else's is left alone.
func TestLoadRedisElsewhere(t *testing.T) {
	var out, errs strings.Builder
	program := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}
	code := program.Run(t.Context(), []string{"load", "--in-process", "--redis", "redis://127.0.0.1:1"})
	if want := "sluice: --in-process is a place of its own, --redis is about another: pass one; run `sluice load --help`\n"; code != 2 || errs.String() != want {
		t.Errorf("exit code %d, %s", code, errs.String())
	}
}
