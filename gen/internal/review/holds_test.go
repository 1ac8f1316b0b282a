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
	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

const inflightFile = "../../testdata/golden/inflight/limits.yaml"

// TestSizesOfHolds holds sizes against an item with holds that generated code wrote, to the byte.
func TestSizesOfHolds(t *testing.T) {
	r, c := modelOf(t, inflightFile, "calls", "user")
	all, err := definitions.ForDynamo(inflight.New)
	if err != nil {
		t.Fatal(err)
	}
	calls := all[inflight.Calls]
	kinds := calls.Spec().Kinds
	kind := kinds[slices.IndexFunc(kinds, func(k store.Kind) bool { return k.Name == "user" })]
	const now = 1_800_000_060_001 // neither this instant nor its minute ends with zeros
	w := &codec.Write{
		Entity: "user-" + uuid, Limits: kind.Limits, Cost: make([]int64, len(kind.Limits)),
		Ends: []int64{0, now, 0}, Holds: make([]bucket.Hold, len(kind.Limits)),
		RF: now, CV: 8_999_900_000_000_000_000, TTL: now/1000 + 1, Op: "twelve bytes",
	}
	w.Holds[1], w.Holds[2] = bucket.NewHold(0, 0, now), bucket.NewHold(0, 0, now)
	calls.Create(w)
	engine := memdynamo.New()
	limittest.StoreOn(t, engine)
	item := maps.Clone(w.Item)
	s := subject{resource: "calls"}
	if got, want := measured(t, engine, item), sizeOf(r, c, len(uuid)).New; got != want {
		t.Errorf("a new item takes %d bytes, the document says %d", got, want)
	}
	s.with(t, item, map[string]string{"ttl": "253402300799", "cv": "9000012345678912345",
		"_tc": "9223372036854775000", "_e": "99999999"})
	for i, l := range r.Limits {
		nines := strings.Repeat("9", len(strconv.FormatInt(c.Numbers[i].Burst*milli, 10)))
		s.with(t, item, map[string]string{l.Attrs.Tokens: "-" + nines})
		if l.Holds() {
			s.with(t, item, map[string]string{l.Attrs.Cells[0]: nines, l.Attrs.Cells[1]: nines})
		}
	}
	want := sizeOf(r, c, len(uuid)).Most
	if got := measured(t, engine, item); got != want {
		t.Errorf("an item takes %d bytes at most, the document says %d", got, want)
	}
	s.with(t, item, map[string]string{"b_month_e": "100000001"}) // a digit more, in the year 2160
	if got := measured(t, engine, item); got != want+1 {
		t.Errorf("a byte more makes %d bytes, want %d", got, want+1)
	}
}

// heldOf is bucketOf, of limits in flight.
func heldOf(limits, letters int) (*model.Resource, *model.Charged) {
	_, c := sampleOf(limits, letters)
	r := &schema.Resource{Name: "api", GoName: "API"}
	for i := range limits {
		name := strconv.Itoa(i)
		name = "l" + strings.Repeat("0", letters-1-len(name)) + name
		r.Limits = append(r.Limits, &schema.Limit{Name: name, GoName: "L", InFlight: true})
		c.Numbers[i].Refill, c.Numbers[i].Period = 0, 1_000_000
	}
	return model.ResourceOf(r), c
}

// TestHoldsTake40: what counts holds takes about 40 bytes of an item, by a name of three letters.
func TestHoldsTake40(t *testing.T) {
	with, numbers := heldOf(1, 3)
	plain := *with
	limit := *with.Limits[0]
	limit.Attrs.Cells, limit.Attrs.Epoch = [2]string{}, ""
	plain.Limits = []*model.Limit{&limit}
	got := sizeOf(with, numbers, typicalID).Most - sizeOf(&plain, numbers, typicalID).Most
	if got < 36 || got > 40 {
		t.Errorf("holds take %d bytes, want 36 to 40", got)
	}
}

// TestItemOfAllKinds: an item with a limit that refills, one with windows and holds and one in flight takes
// at most 690 bytes, with ids of 36.
func TestItemOfAllKinds(t *testing.T) {
	r, c := modelOf(t, inflightFile, "calls", "user")
	if got := sizeOf(r, c, typicalID).Most; got > 690 {
		t.Errorf("it takes %d bytes", got)
	}
}

// TestHoldsTakeOneUnit is TestReadsTakeOneUnit of limits in flight.
func TestHoldsTakeOneUnit(t *testing.T) {
	largest := 0
	for letters := 3; letters <= 32; letters++ {
		for limits := 1; ; limits++ {
			r, c := heldOf(limits, letters)
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

// TestHoldsSaid: the document says what leases hold and when it comes back, of resources with holds alone.
func TestHoldsSaid(t *testing.T) {
	r, _ := modelOf(t, inflightFile, "calls", "user")
	said := strings.Join(strings.Fields(holds(r)+manner(r)), " ")
	for _, want := range []string{
		"A lease holds what it took of `month` and `parallel` until it ends", "1 to 2 minutes later",
		"4 after a reset",
		"`keep` costs what a settle does", "one write of each bucket a minute",
	} {
		if !strings.Contains(said, want) {
			t.Errorf("the document does not say %q: %s", want, said)
		}
	}
	m := &markdown{}
	redis(m, r)
	if text := m.text.String(); strings.Count(text, "`holds.lua` |") != len(r.Charged) ||
		strings.Contains(text, "windows.lua") {
		t.Errorf("on Redis, calls do not run holds.lua: %s", text)
	}
	plain, _ := modelOf(t, "../../testdata/golden/windows/limits.yaml", "mail", "org")
	if got := holds(plain) + manner(plain); strings.Contains(got, "lease") {
		t.Errorf("without holds, it says %s", got)
	}
}
