package table

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestExpired(t *testing.T) {
	at := func(seconds int) value.Value { return value.NumberOf(start.Unix() + int64(seconds)) }
	items := map[string]value.Value{
		"now": at(0), "soon": at(1), "later": at(2), "long ago": at(-1000), "text": value.String("1"),
		"milliseconds": value.NumberOf(start.UnixMilli()), "a mistake": value.NumberOf(1),
		"below zero": value.NumberOf(-5),
		"huge":       number("1e100"), "a fraction": number("0.5"),
	}
	table := New(Def{Key: KeySchema{Hash: Attribute{"id", value.KindS}}})
	add := func(id string, expiry value.Value) {
		put(table, value.Map{"id": value.String(id), "ttl": expiry})
	}
	expired := func(when string, before time.Time, want ...string) {
		t.Helper()
		var got []string
		for _, key := range table.Expired(before) {
			got = append(got, string(table.Get(key)["id"].(value.String)))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", when, diff)
		}
	}
	for id, expiry := range items {
		add(id, expiry)
	}
	expired("no attribute", start.Add(time.Hour))
	table.ExpireBy("ttl")
	expired("at the second", start, "long ago")
	expired("just after", start.Add(1), "long ago", "now")
	expired("the next second", start.Add(time.Second), "long ago", "now")
	expired("two", start.Add(2*time.Second), "long ago", "now", "soon")
	add("long ago", at(1000))
	add("later", at(-2000))
	expired("moved", start.Add(2*time.Second), "later", "now", "soon")
	table.Set(Change{At: start, Key: table.KeyOf(value.Map{"id": value.String("now")})})
	expired("deleted", start.Add(2*time.Second), "later", "soon")
	table.ExpireBy("")
	expired("off", start.Add(2*time.Second))
}
