package review

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
	windows "github.com/sluice-go/sluice/gen/testdata/golden/windows/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestSizesOfWindows holds sizes against an item with windows that generated code wrote, to the byte.
func TestSizesOfWindows(t *testing.T) {
	r, c := modelOf(t, "../../testdata/golden/windows/limits.yaml", "mail", "org")
	all, err := definitions.Of(windows.New)
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(def store.Definition) bool { return def.Spec().Resource == "mail" })
	mail := all[at].(codec.Resource)
	kinds := mail.Spec().Kinds
	kind := kinds[slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == "org" })]
	const now = 1_800_000_000_001 // no instant ends with zeros
	w := &codec.Write{
		Entity: "org-" + uuid, Limits: kind.Limits, Cost: make([]int64, len(kind.Limits)),
		Ends: make([]int64, len(kind.Limits)), RF: now, CV: 8_999_900_000_000_000_000, TTL: now/1000 + 1,
		Op: "twelve bytes",
	}
	for i := range w.Ends {
		if kind.Windows[i] != nil {
			w.Ends[i] = now
		}
	}
	mail.Create(w)
	engine := memdynamo.New()
	limittest.StoreOn(t, engine)
	bucket := maps.Clone(w.Item)
	s := subject{resource: "mail"}
	if got, want := measured(t, engine, bucket), sizeOf(r, c, len(uuid)).New; got != want {
		t.Errorf("a new item takes %d bytes, the document says %d", got, want)
	}
	s.with(t, bucket, map[string]string{"ttl": "253402300799", "cv": "9000012345678912345",
		"_tc": "9223372036854775000"})
	for i, l := range r.Limits {
		digits := len(strconv.FormatInt(c.Numbers[i].Burst*milli, 10))
		s.with(t, bucket, map[string]string{l.Attrs.Tokens: "-" + strings.Repeat("9", digits)})
	}
	want := sizeOf(r, c, len(uuid)).Most
	if got := measured(t, engine, bucket); got != want {
		t.Errorf("an item takes %d bytes at most, the document says %d", got, want)
	}
	s.with(t, bucket, map[string]string{"b_daily_we": "180000000000123"}) // two digits more
	if got := measured(t, engine, bucket); got != want+1 {
		t.Errorf("a byte more makes %d bytes, want %d", got, want+1)
	}
}

// windowsOf is bucketOf, of limits with windows.
func windowsOf(limits, letters int) (*model.Resource, *model.Charged) {
	_, c := sampleOf(limits, letters)
	r := &schema.Resource{Name: "api", GoName: "API"}
	w := window.Of("day")
	for i := range limits {
		name := strconv.Itoa(i)
		name = "l" + strings.Repeat("0", letters-1-len(name)) + name
		r.Limits = append(r.Limits, &schema.Limit{Name: name, GoName: "L", Window: &w})
		c.Numbers[i].Refill = 0
	}
	return model.ResourceOf(r), c
}

// TestWindowTakes16: the end of a window takes 16 bytes of an item, by a name of three letters. A refill of 0
// takes less.
func TestWindowTakes16(t *testing.T) {
	plain, plainNumbers := sampleOf(1, 3)
	with, numbers := windowsOf(1, 3)
	less := numberBytes(plainNumbers.Numbers[0].Refill*milli) - numberBytes(0)
	got := sizeOf(with, numbers, typicalID).Most - sizeOf(plain, plainNumbers, typicalID).Most + less
	if got != 16 {
		t.Errorf("a window takes %d bytes, want 16", got)
	}
}

// TestWindowsTakeOneUnit is TestReadsTakeOneUnit of limits with windows.
func TestWindowsTakeOneUnit(t *testing.T) {
	largest := 0
	for letters := 3; letters <= 32; letters++ {
		for limits := 1; ; limits++ {
			r, c := windowsOf(limits, letters)
			if slices.ContainsFunc(expr.Paths(r), func(p *expr.Path) bool {
				return len(p.Update) > expr.MaxBytes || len(p.Condition) > expr.MaxBytes
			}) {
				break
			}
			largest = max(largest, sizeOf(r, c, mostID).Most)
		}
	}
	const readBytes = 4 * unitBytes
	if largest > readBytes || largest < readBytes/2 {
		t.Errorf("the largest item takes %d bytes", largest)
	}
}
