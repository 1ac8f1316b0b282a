package schema

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestMoney reads the design's example.
func TestMoney(t *testing.T) {
	s, problems := Read("limits.yaml", cases(t)["money_good"])
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	r := s.Resources[0]
	got := make(map[string]string)
	for _, u := range r.Usage {
		got[u.GoName] = fmt.Sprint(u.Price, " ", u.Doc)
	}
	want := map[string]string{
		"Input": "2500000 tokens of the prompt", "Cached": "1 ", "Output": "10000000000 ", "Calls": "10000000000 ",
		"Image": "0 ",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
	for i, want := range []string{
		"60 every 1m", "10_000 every 1m", `money: USD and 50 with window: day, starts: "00:00", zone: UTC`,
		"money: USD and 9_000_000 with window: month, starts: 1, zone: Europe/Berlin, on_crash: release",
		"money: USD and 12.345678 with window: year, zone: UTC",
	} {
		if got := r.Limits[i].Written(r.Limits[i].Numbers); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	if got := r.Limits[1].Counts; !slices.Equal(got, []string{"input", "output"}) {
		t.Errorf("tpm counts %v", got)
	}
	org := r.Charged[1]
	if n := org.Limits[3]; n.Capacity != 500_000_000 || n.Currency != "USD" || org.PerCall[3] != 1000 {
		t.Errorf("restated: %+v, per call %d", n, org.PerCall[3])
	}
}

// TestDrawnAmounts: a text in place of an amount or a price is read as what package decimal has for it, or is
// a problem at its own place.
func TestDrawnAmounts(t *testing.T) {
	texts := rapid.OneOf(rapid.SampledFrom([]string{"1e3", ".5", "0.1234567890123", "٣", "2.5/M", "0x1F", "1_0",
		"0100", ".inf", ".nan", "1:30", "0o7", "0b1", "+1", "~", "1.", "12.50", "2.50/1M", "10/1k"}),
		rapid.StringMatching(`[0-9_]{1,4}(\.[0-9]{0,13})?(/(1k|1M|M|1))?`),
		rapid.StringMatching(`[0-9eE.+\-]{1,6}`))
	rapid.Check(t, func(t *rapid.T) {
		amount, price := texts.Draw(t, "amount"), texts.Draw(t, "price")
		src := "version: 1\nowner: acme\nrevision: 1\ngo: {package: x}\nentities: {user: {}}\nresources:\n  " +
			"chat:\n" +
			"    on_unavailable: deny\n    limits:\n      day:\n        money: USD\n        window: day\n" +
			"        capacity: " + amount + "\n    usage:\n      input:\n        price: " + price + "\n"
		s, problems := Read("limits.yaml", []byte(src))
		if strings.Contains(problems.Error(), "YAML_SYNTAX") {
			return
		}
		l, u := s.Resources[0].Limits[0], s.Resources[0].Usage[0]
		for _, v := range []struct {
			text string
			got  int64
			line int
		}{{amount, l.Capacity, 13}, {price, u.Price, 16}} {
			at := slices.IndexFunc(problems, func(p Problem) bool { return p.Line == v.line })
			if (v.got == 0) != (at >= 0) {
				t.Fatalf("%s became %d, and %v", v.text, v.got, problems)
			}
			if at >= 0 && problems[at].Col < 16 {
				t.Errorf("%v is not at %s", problems[at], v.text)
			}
		}
		if n, why := ParseAmount(amount); l.Capacity != 0 && (why != "" || n != l.Capacity) {
			t.Errorf("%s became %d, want %d: %s", amount, l.Capacity, n, why)
		}
	})
}
