package region

import (
	"strings"
	"testing"
	"time"
)

// TestDecode reads what was written, and refuses, by name, what cannot be.
func TestDecode(t *testing.T) {
	w := newWorld(t, 1000, "a", "b")
	w.regions[0].rates[user], w.regions[1].rates[user] = 3, 1
	w.run(6)
	object := string(w.objects["a/snapshot.json"])
	decode := func(object, region string, window time.Duration) error {
		_, err := Decode([]byte(object), region, window, w.now, window)
		return err
	}
	if err := decode(object, "a", window); err != nil {
		t.Fatal(err)
	}
	entry := object[strings.Index(object, `{"entity"`):strings.LastIndex(object, "]}")]
	limit := object[strings.Index(object, `{"limit"`):strings.LastIndex(object, "]}]}")]
	const evil = `"a\u001b[2J\nb"`
	evilLimit, evilEntry := strings.Replace(limit, `"rpm"`, evil, 1), strings.Replace(entry, `"gpt-4"`, evil, 1)
	const (
		same    = "; run the same sluice in all regions"
		foreign = "; see to it that only the sync of a writes there: its next cycle puts a new one"
	)
	for name, test := range map[string]struct{ object, region, want string }{
		"not JSON": {"}", "a", "cannot be read: invalid character '}' looking for beginning of value" +
			foreign},
		"empty":      {"", "a", "cannot be read: it is empty" + foreign},
		"cut off":    {object[:len(object)/2], "a", "cannot be read: it is cut off" + foreign},
		"two in one": {object + object, "a", "cannot be read: it is more than one JSON object" + foreign},
		"unknown version": {strings.Replace(object, `"version":1`, `"version":2`, 1), "a",
			"cannot be read: it has version 2, this binary reads 1" + same},
		"unknown field": {strings.Replace(object, `"epoch"`, `"era":1,"epoch"`, 1), "a",
			`cannot be read: json: unknown field "era"` + same},
		"wrong region": {object, "b", `is the snapshot of "a": an object was copied` + strings.Replace(foreign,
			"of a",
			"of b", 1)},
		"no epoch": {strings.Replace(object, `"epoch":1`, `"epoch":0`, 1), "a",
			"has epoch 0 and sequence 5, want 1 or above" + foreign},
		"another window": {strings.Replace(object, `"window":10000`, `"window":20000`, 1), "a",
			"has windows of 20s, this region of 10s; deploy the same limits.yaml"},
		"in the future": {strings.Replace(object, `"generated_at":17000000`, `"generated_at":18000000`, 1), "a",
			"was generated at 2027-01-15T08:01:00Z, in the future; set that host's clock, or this one's, by NTP"},
		"an entity twice": {strings.Replace(object, entry, entry+","+entry, 1), "a",
			"has for gpt-4 of user-1 more than one entry" + foreign},
		"a limit twice": {strings.Replace(object, limit, limit+","+limit, 1), "a",
			"has for gpt-4 of user-1 more than one entry of limit rpm" + foreign},
		"a negative quota": {strings.Replace(object, `"share":`, `"share":-`, 1), "a", foreign},
		"negative gifts": {strings.Replace(object, `"given":{"b":`, `"given":{"b":-`, 1), "a",
			"moved with b of limit rpm: want 0 or above" + foreign},
		"a hostile limit": {strings.Replace(object, limit, evilLimit+","+evilLimit, 1), "a",
			`has for gpt-4 of user-1 more than one entry of limit "a\x1b[2J\nb"` + foreign},
		"a hostile resource": {strings.Replace(object, entry, evilEntry+","+evilEntry, 1), "a",
			`has for "a\x1b[2J\nb" of user-1 more than one entry` + foreign},
		"a hostile peer": {strings.Replace(object, `"given":{"b":`, `"given":{"a\u001b[2J\nb":-`, 1), "a",
			`moved with "a\x1b[2J\nb" of limit rpm: want 0 or above` + foreign},
	} {
		if err := decode(test.object, test.region, window); err == nil ||
			!strings.HasPrefix(err.Error(), "the snapshot of "+test.region+", "+test.region+"/snapshot.json, ") ||
			!strings.HasSuffix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
