package review

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// TestScriptsCompensate: on Redis compensated is atomic, and the document says so where it is asked for.
func TestScriptsCompensate(t *testing.T) {
	for cascade, want := range map[string]bool{"cascade: atomic": false, "cascade: compensated": true,
		"cascade: none": false} {
		read, problems := schema.Read("limits.yaml", []byte(`version: 1
owner: acme
revision: 1
go: {package: limits}
stores: [redis]
entities: {user: {parent: org}, org: {}}
resources:
  api:
    limits: {rpm: {capacity: 100, every: 1m}}
    entities: {user: {}, org: {}}
    `+cascade+"\n"))
		if len(problems) > 0 {
			t.Fatal(problems)
		}
		if got := strings.Contains(string(Document(model.Of(read, "limits.yaml"))),
			"`cascade: compensated` is no other than `atomic`"); got != want {
			t.Errorf("%s: it says so: %v, want %v", cascade, got, want)
		}
	}
}

// TestLife holds how long hashes live against EXPIRE's argument in scripts, by hand.
func TestLife(t *testing.T) {
	for _, tc := range []struct {
		numbers schema.Numbers
		want    int64
	}{
		{schema.Numbers{Burst: 100, Refill: 100, Period: time.Minute}, 120},
		{schema.Numbers{Burst: 15_000, Refill: 10_000, Period: time.Minute}, 180},
		{schema.Numbers{Burst: 1000, Refill: 1000, Period: 24 * time.Hour}, 172_800},
		{schema.Numbers{Burst: 7, Refill: 3, Period: time.Second}, 6},
		{schema.Numbers{Burst: 1, Refill: 1, Period: time.Millisecond}, 2},
	} {
		if got := life(tc.numbers); got != tc.want {
			t.Errorf("%+v lives for %d s, want %d", tc.numbers, got, tc.want)
		}
	}
}

// TestMemory holds the bytes against what redis-server 7.0.15 was measured to take.
func TestMemory(t *testing.T) {
	r, _ := modelOf(t, "../../../limits.yaml", "gpt-4", "user")
	if got := memory(r, r.Charged[:1]); got != 2*224 {
		t.Errorf("two limits of gpt-4 take %d bytes, want twice 224", got)
	}
	for bytes, want := range map[int]int{7: 16, 109: 112, 128: 128, 129: 160, 160: 160, 161: 192, 256: 256,
		257: 320} {
		if got := allocated(bytes); got != want {
			t.Errorf("%d bytes take %d, want %d", bytes, got, want)
		}
	}
}

// TestScriptBytes: the document has the length of each script, and names any.lua where there is none.
func TestScriptBytes(t *testing.T) {
	var thirteen []string // two chains of them have more keys than a script
	for i := range 13 {
		thirteen = append(thirteen, fmt.Sprintf("l%d: {capacity: 1, every: 1m}", i))
	}
	read, problems := schema.Read("limits.yaml", []byte(`version: 1
owner: acme
revision: 1
go: {package: limits}
stores: [redis]
entities: {user: {parent: org}, org: {}}
resources:
  api:
    limits: {`+strings.Join(thirteen, ", ")+`}
    entities: {user: {}, org: {}}
`))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	p := model.Of(read, "limits.yaml")
	doc := string(Document(p))
	for chain, want := range []string{words.Digits(int64(len(lua.Scripts(p.Resources[0])[0].Text)), ","),
		"`any.lua`"} {
		if !regexp.MustCompile(`(?m)^\|.* \| ` + fmt.Sprint(13*(chain+1)) + ` \|.* \| ` + want +
			` \|$`).MatchString(doc) {
			t.Errorf("a chain of %d has not %s at its end", chain+1, want)
		}
	}
	for _, other := range []string{"DynamoDB", "WCU", "b_l", "redis.call"} {
		if strings.Contains(doc, other) {
			t.Errorf("the document of Redis has %s", other)
		}
	}
}
