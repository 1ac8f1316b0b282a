package perlimit

import (
	"math/big"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	inflight "github.com/sluice-go/sluice/gen/testdata/golden/inflight/out"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// stored is an item of user-1.
func stored(resource, limit string) codec.Item {
	return codec.Item{
		"PK": codec.S("ENTITY#user-1"), "SK": codec.S("#BUCKET#" + resource + "#" + limit),
		Tokens: codec.N(90_000), Capacity: codec.N(100_000), Burst: codec.N(150_000), Refill: codec.N(100_000),
		Period: codec.N(60_000), Consumed: codec.N(10_000), Refilled: codec.N(1_000),
	}
}

func TestDecode(t *testing.T) {
	whole := Item{
		Entity: "user-1", Resource: "gpt-4", Name: "rpm", Refilled: 1_000,
		Balance: bucket.Balance{
			Limit: bucket.Limit{
				Capacity: 100_000,
				Burst:    150_000,
				Refill:   100_000,
				Period:   60_000,
			}, Tokens: 90_000, Consumed: 10_000,
		},
	}
	uncounted, marked := whole, whole
	uncounted.Consumed, marked.Migrated = 0, 7
	for _, test := range []struct {
		name string
		set  codec.Item // nil: not there
		want Item
		err  string
	}{
		{"whole", nil, whole, ""},
		{"nothing was ever counted", codec.Item{Consumed: nil}, uncounted, ""},
		{"marked", codec.Item{Migrated: codec.N(7)}, marked, ""},
		{"marked with nothing", codec.Item{Migrated: codec.N(0)}, Item{}, "attribute migrated 0"},
		{"no tokens", codec.Item{Tokens: nil}, Item{}, "attribute tokens_milli missing"},
		{"a fraction", codec.Item{Tokens: &types.AttributeValueMemberN{Value: "1.5"}}, Item{},
			`attribute tokens_milli "1.5"`},
		{"no refill", codec.Item{Refill: codec.N(0)}, Item{}, "attribute refill_amount_milli 0"},
		{"a bucket", codec.Item{"SK": codec.S("#BUCKET#gpt-4")}, Item{},
			"attribute SK item"},
		{"an entity's", codec.Item{"SK": codec.S("#META")}, Item{}, "attribute SK item"},
		{"somebody else's", codec.Item{"PK": codec.S("user-1")}, Item{},
			"attribute SK item"},
	} {
		t.Run(test.name, func(t *testing.T) {
			item := stored("gpt-4", "rpm")
			for attr, v := range test.set {
				if item[attr] = v; v == nil {
					delete(item, attr)
				}
			}
			got, err := Decode(item)
			if err != nil || test.err != "" {
				if text := errtext.Of(err); text != test.err {
					t.Errorf("got %q, want %q", text, test.err)
				}
				return
			}
			if diff := cmp.Diff(test.want, got, cmpopts.IgnoreUnexported(Item{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if got.Counts() != (test.want.Migrated == 0) {
				t.Errorf("Counts is %v", got.Counts())
			}
		})
	}
}

// TestAt compares a balance that was carried over at any instant, and refilled as a bucket from then on, with
// the item in exact fractions. It is never ahead by more than one millitoken, which a telescoping refill may
// be, and behind by less than two.
func TestAt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		i := Item{Refilled: rapid.Int64Range(1, 1e12).Draw(t, "refilled")}
		i.Limit = bucket.Limit{
			Burst:  rapid.Int64Range(1, 1e12).Draw(t, "burst"),
			Refill: rapid.Int64Range(1, 1e12).Draw(t, "refill"), Period: rapid.Int64Range(1, 1e9).Draw(t, "period"),
		}
		i.Tokens = rapid.Int64Range(-1e12, i.Burst).Draw(t, "tokens")
		now := i.Refilled + rapid.Int64Range(-1e6, 1e9).Draw(t, "since")
		later := max(now, i.Refilled) + rapid.Int64Range(0, 1e9).Draw(t, "later")

		got := bucket.Available(bucket.Balance{Limit: i.Limit, Tokens: i.At(now)}, now, later)
		want := big.NewRat(1, 1).SetFrac64(i.Refill, i.Period)
		want.Mul(want, big.NewRat(later-i.Refilled, 1)).Add(want, big.NewRat(i.Tokens, 1))
		if burst := big.NewRat(i.Burst, 1); want.Cmp(burst) > 0 {
			want = burst
		}
		off := want.Sub(big.NewRat(got, 1), want)
		if off.Cmp(big.NewRat(1, 1)) > 0 || off.Cmp(big.NewRat(-2, 1)) <= 0 {
			t.Fatalf("off by %v", off.FloatString(3))
		}
	})
}

// TestPut: what a carry puts is what the generated code stores, and m_<limit> besides.
func TestPut(t *testing.T) {
	rpm, err := Decode(stored("gpt-4", "rpm"))
	if err != nil {
		t.Fatal(err)
	}
	perMinute := bucket.Per(100, time.Minute)
	b := &Bucket{
		Entity: "user-1", Resource: "gpt-4", Names: []string{"rpm", "tpm"}, Limits: []bucket.Limit{perMinute,
			perMinute},
		Version: 3, Op: "op", Items: []Item{rpm}, Now: 4_000,
	}
	img := b.Image()
	want := (&limits.GPT4Bucket{
		Entity: "user-1", Refilled: 4_000, Version: 3, Op: "op", TTL: 124,
		RPM: bucket.Balance{Limit: perMinute, Tokens: 95_000, Consumed: 10_000},
		TPM: bucket.Balance{Limit: perMinute, Tokens: 100_000},
	}).MarshalItem()
	want["m_rpm"] = codec.N(10_000)
	if diff := cmp.Diff(want, b.put(img), cmpopts.IgnoreUnexported(types.AttributeValueMemberN{},
		types.AttributeValueMemberS{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestImageInFlight: a limit in flight starts with all its slots, whatever an item had of it, and counts
// holds from then on. Without cells, generated code could not read the bucket.
func TestImageInFlight(t *testing.T) {
	item, err := Decode(stored("slots", "parallel"))
	if err != nil {
		t.Fatal(err)
	}
	b := &Bucket{
		Entity: "user-1", Resource: "slots", Names: []string{"parallel"},
		Limits: []bucket.Limit{bucket.InFlight(5)}, Held: []bool{true},
		Version: 3, Op: "op", Items: []Item{item}, Now: 4_000,
	}
	want := bucket.Balance{Limit: bucket.InFlight(5), Tokens: 5_000, Consumed: 10_000, Epoch: 1}
	var read inflight.SlotsBucket
	if err := read.UnmarshalItem(b.put(b.Image())); err != nil || read.Parallel != want {
		t.Errorf("%+v, %v, want %+v", read.Parallel, err, want)
	}
	b.Held = nil
	if err := read.UnmarshalItem(b.put(b.Image())); err == nil {
		t.Error("control: a bucket that counts no holds is read")
	}
}

// FuzzDecode: whatever the numbers, an item is refused or worth at most its burst at any instant.
func FuzzDecode(f *testing.F) {
	f.Add("90000", "100000", "150000", "100000", "60000", "1000", int64(4_000))
	f.Add(
		"-9223372036854775808",
		"1",
		"1",
		"9223372036854775807",
		"1",
		"9223372036854775807",
		int64(-9223372036854775808),
	)
	f.Fuzz(func(t *testing.T, tokens, capacity, burst, refill, period, refilled string, now int64) {
		item := stored("gpt-4", "rpm")
		for attr, n := range map[string]string{
			Tokens: tokens, Capacity: capacity, Burst: burst, Refill: refill, Period: period, Refilled: refilled,
		} {
			item[attr] = &types.AttributeValueMemberN{Value: n}
		}
		i, err := Decode(item)
		if err == nil && i.At(now) > i.Burst {
			t.Errorf("%d of %d at %d", i.At(now), i.Burst, now)
		}
	})
}
