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
	for name, test := range map[string]struct{ object, region, want string }{
		"not JSON":         {"}", "a", "cannot be read"},
		"cut off":          {object[:len(object)/2], "a", "cannot be read"},
		"two in one":       {object + object, "a", "more than one"},
		"unknown version":  {strings.Replace(object, `"version":1`, `"version":2`, 1), "a", "version 2, this binary reads 1"},
		"unknown field":    {strings.Replace(object, `"epoch"`, `"era":1,"epoch"`, 1), "a", "era"},
		"wrong region":     {object, "b", `that of "a"`},
		"no epoch":         {strings.Replace(object, `"epoch":1`, `"epoch":0`, 1), "a", "epoch 0"},
		"another window":   {strings.Replace(object, `"window":10000`, `"window":20000`, 1), "a", "windows of 20s"},
		"in the future":    {strings.Replace(object, `"generated_at":17000000`, `"generated_at":18000000`, 1), "a", "in the future"},
		"an entity twice":  {strings.Replace(object, entry, entry+","+entry, 1), "a", "gpt-4 of user-1 twice"},
		"a limit twice":    {strings.Replace(object, limit, limit+","+limit, 1), "a", "limit rpm twice"},
		"a negative share": {strings.Replace(object, `"share":`, `"share":-`, 1), "a", "share -"},
		"negative gifts":   {strings.Replace(object, `"given":{"b":`, `"given":{"b":-`, 1), "a", "moved with b"},
	} {
		if err := decode(test.object, test.region, window); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", name, err, test.want)
		}
	}
}
