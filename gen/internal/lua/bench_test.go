package lua

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/redistest"
)

// BenchmarkScript is how long a redis-server is busy with one call, by a script and by any.lua, which loops
// over the same keys:
//
//	SLUICE_REDIS=server go test ./gen/internal/lua -run '^$' -bench . -benchtime 300x
func BenchmarkScript(b *testing.B) {
	redistest.RequireServer(b)
	for _, tc := range []struct{ limits, chain int }{{1, 1}, {2, 1}, {2, 2}, {4, 3}} {
		b.Run(fmt.Sprintf("limits=%d/buckets=%d", tc.limits, tc.chain), func(b *testing.B) {
			s := newServer(b)
			script := scriptOf(tc.chain, strings.Fields("a b c d")[:tc.limits]...)
			n := tc.limits * tc.chain
			keys := make([]string, n)
			for i := range keys {
				keys[i] = s.prefix + strconv.Itoa(i)
			}
			args := slices.Concat([]any{age}, slices.Repeat([]any{"1000000000", "277.77", "0"}, n),
				slices.Repeat([]any{"1"}, 1+n))
			var own, loop float64
			for b.Loop() {
				own += s.busy(b, script, keys, args)
				loop += s.busy(b, s.any, keys, append([]any{n}, args...))
			}
			b.ReportMetric(own/float64(b.N), "µs/script")
			b.ReportMetric(loop/float64(b.N), "µs/loop")
			b.ReportMetric(own/loop, "of-the-loop")
			b.ReportMetric(0, "ns/op") // of both, and the way there
		})
	}
}

// spent is what the server says that it has spent on scripts, in µs.
var spent = regexp.MustCompile(`cmdstat_evalsha:calls=\d+,usec=(\d+)`)

// busy returns for how many µs the server runs a script, on average of some calls at once.
func (s *server) busy(b *testing.B, script string, keys []string, args []any) float64 {
	b.Helper()
	const calls = 200
	pipe := s.client.Pipeline()
	pipe.ConfigResetStat(b.Context())
	sha := pipe.ScriptLoad(b.Context(), script)
	if _, err := pipe.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
	for range calls {
		pipe.EvalSha(b.Context(), sha.Val(), keys, args...)
	}
	stats := pipe.Info(b.Context(), "commandstats")
	if _, err := pipe.Exec(b.Context()); err != nil {
		b.Fatal(err)
	}
	found := spent.FindStringSubmatch(stats.Val())
	if found == nil {
		b.Fatalf("no time of scripts in\n%s", stats.Val())
	}
	us, err := strconv.ParseFloat(found[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return us / calls
}
