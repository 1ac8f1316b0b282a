package top

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/alicebob/miniredis/v2"
)

// TestTopWatchRedis draws what there is in a Redis, as it changes, by Redis's clock, and ends where Redis
// does.
func TestTopWatchRedis(t *testing.T) {
	server := miniredis.RunT(t)
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	server.SetTime(now)
	top := Command{Resource: "embeddings", Most: 2, Watch: true,
		Flag: schemafile.Flag{File: "../../../../limits.yaml"}}
	limits, err := top.Flag.Read()
	if err != nil {
		t.Fatal(err)
	}
	at, err := bucketstore.ConnectRedis(t.Context(), "redis://"+server.Addr()+"?max_retries=-1", "", limits)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(at.Close)
	named := strings.NewReplacer("ADDR", server.Addr())
	steps := []func(){
		func() {
			server.HSet("sluice:embeddings:rps:project-1", "tokens", "5.5", "lastRefill", "1772366400000")
		},
		func() { server.SetTime(now.Add(100 * time.Millisecond)) },
		server.Close,
	}
	var out strings.Builder
	program := program.Env{Stdout: &out, Stderr: &out, Now: func() time.Time { return now }}
	err = top.watch(context.Background(), program, at, func(time.Duration) <-chan time.Time {
		steps[0]()
		steps = steps[1:]
		over := make(chan time.Time)
		close(over)
		return over
	})
	want := `<clear>
` + "no bucket of embeddings in redis://ADDR, prefix sluice:: none was used, all have expired, or the " +
		"name, prefix or Redis is wrong" + `
again every 2s until Ctrl-C
<clear>
ENTITY     LIMIT                        USED  AVAILABLE  BURST  FULL IN
project-1  rps    ██████████████░░░░░░   72%        5.5     20  800ms
1 bucket read in 0s
again every 2s until Ctrl-C
<clear>
ENTITY     LIMIT                        USED  AVAILABLE  BURST  FULL IN
project-1  rps    ████████████░░░░░░░░   62%        7.5     20  700ms
1 bucket read in 0s
again every 2s until Ctrl-C
`
	if got := strings.ReplaceAll(out.String(), clearScreen, "<clear>\n"); got != named.Replace(want) {
		t.Errorf("%s\nwant\n%s", got, named.Replace(want))
	}
	if err == nil || err.Error() != named.Replace("redis://ADDR does not answer: start Redis there, or "+
		"correct the URL (--redis, SLUICE_REDIS_URL)") {
		t.Errorf("%v, want where it was", err)
	}
}
