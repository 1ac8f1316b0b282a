package region

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// randomSnapshot returns one as publish writes it. Names may need escapes.
func randomSnapshot(rng *rand.Rand) *Snapshot {
	s := &Snapshot{Version: Version, Region: "eu", Epoch: 1 + rng.Int64N(9), Sequence: rng.Int64(),
		GeneratedAt: rng.Int64(), Window: 10_000, Peers: map[string]Known{"us": {Epoch: 2, Evicted: true}},
		Entries: []Entry{}}
	names := []string{"user-1", "user-é", `user-"`, "user-a&b", "user-\u2028", strings.Repeat("x", 200)}
	for _, resource := range []string{"a", "b\\"} {
		for _, entity := range names {
			if rng.IntN(3) == 0 {
				continue
			}
			e := Entry{Entity: entity, Resource: resource, Born: rng.Int64(), Used: -rng.Int64(), Gen: rng.Int64N(3),
				Closing: rng.IntN(2) == 0, Fresh: rng.IntN(2) == 0, Raising: rng.IntN(2) == 0, Limits: []Holding{}}
			for range rng.IntN(4) {
				h := Holding{Limit: names[rng.IntN(len(names))], TK: rng.Int64() - rng.Int64(), TC: rng.Int64N(10)}
				for range rng.IntN(3) {
					h.Given = withEntry(h.Given, names[rng.IntN(len(names))], 1+rng.Int64N(5))
					h.Taken = withEntry(h.Taken, "us", 1+rng.Int64N(5))
				}
				e.Limits = append(e.Limits, h)
			}
			s.Entries = append(s.Entries, e)
		}
	}
	return s
}

// TestParseQuickly: the quick parser reads what is published as encoding/json does, and shares memory with
// the snapshot before only where both are equal. It leaves what it does not know to encoding/json.
func TestParseQuickly(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	var before *Snapshot
	for range longform.Count(t, "snapshots", 500, 100) {
		want := randomSnapshot(rng)
		object, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		got, ok := parseQuickly(object, before)
		if !ok {
			t.Fatalf("not parsed: %s", object)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("%s\n%s", diff, object)
		}
		before = got
	}
	refused := 0
	broken := longform.Count(t, "broken objects", 20_000, 4_000)
	for range broken {
		object, err := json.Marshal(randomSnapshot(rng))
		if err != nil {
			t.Fatal(err)
		}
		at := rng.IntN(len(object))
		switch rng.IntN(3) {
		case 0:
			object[at] = `"{}[],:0-e\ `[rng.IntN(12)]
		case 1:
			object = object[:at]
		case 2:
			object = append(object[:at], append([]byte(`,"entity":1`), object[at:]...)...)
		}
		got, ok := parseQuickly(object, before)
		if !ok {
			refused++
			continue
		}
		want, err := parse(object, "eu")
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Fatalf("%v %s\n%s", err, diff, object)
		}
	}
	if refused < broken*3/4 { // a digit or a letter of a name may be another one
		t.Errorf("it refused %d of %d broken objects", refused, broken)
	}
}
