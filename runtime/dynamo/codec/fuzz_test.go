package codec_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// FuzzUnmarshal spoils some attributes of a bucket, adds others and takes some away. Both generated readers,
// of a struct and of an image, never panic, name an attribute in their error, and read back what they can.
func FuzzUnmarshal(f *testing.F) {
	all, err := definitions.ForDynamo(limits.New)
	if err != nil {
		f.Fatal(err)
	}
	gpt4 := all[limits.GPT4]
	sound := limits.GPT4Bucket{
		Entity: "user-1", Refilled: 1, Version: 2, Op: "op", TTL: 3,
		RPM: bucket.Balance{Limit: bucket.Limit{Capacity: 1, Burst: 2, Refill: 3, Period: 4}, Tokens: -5},
		TPM: bucket.Balance{Limit: bucket.Limit{Capacity: 1, Burst: 2, Refill: 3, Period: 4}, Consumed: 6},
	}
	attrs := slices.Sorted(maps.Keys(sound.MarshalItem()))
	f.Add(uint64(0), "", "", byte(0))
	f.Add(uint64(1), "b_ipm_tk", "12", byte(1))
	f.Add(uint64(2), "b_rpm_tk", "1e400", byte(1))
	f.Add(uint64(3), "b_rpm_tk", "0.5", byte(1))
	f.Add(uint64(4), "b__tk", "-", byte(1))
	f.Add(uint64(5), "b_tk", "1", byte(1))
	f.Add(uint64(6), "rf", "x", byte(0))
	f.Add(uint64(7), "op", "x", byte(5))
	f.Fuzz(func(t *testing.T, seed uint64, name, value string, kind byte) {
		item := sound.MarshalItem()
		if seed > 0 {
			rng := rand.New(rand.NewPCG(seed, 1))
			for range rng.IntN(4) {
				attr := attrs[rng.IntN(len(attrs))]
				if rng.IntN(2) == 0 {
					delete(item, attr)
				} else {
					item[attr] = attribute(byte(rng.Uint32()), value)
				}
			}
			item[name] = attribute(kind, value)
		}
		named := func(err error) {
			t.Helper()
			mistake, ok := errors.AsType[*codec.AttributeError](err)
			if !ok || mistake.Attr == "" || mistake.Got == "" || mistake.Want == "" {
				t.Errorf("%T: %v, want an AttributeError with all its fields", err, err)
			}
		}
		var b limits.GPT4Bucket
		errBucket := b.UnmarshalItem(item)
		if errBucket != nil {
			named(errBucket)
		} else {
			var again limits.GPT4Bucket
			if b.RPM.Period > 0 && b.TPM.Period > 0 { // not of an item without one of the limits
				if err := again.UnmarshalItem(b.MarshalItem()); err != nil || again != b {
					t.Errorf("%+v came back as %+v, %v", b, again, err)
				}
			}
		}
		var img bucket.Image
		errImage := gpt4.Decode(&img, item)
		if errImage != nil {
			named(errImage)
			return
		}
		if len(img.Balances) != 2 || len(img.Missing) != 2 {
			t.Fatalf("image of %d balances, %d missing", len(img.Balances), len(img.Missing))
		}
		if errBucket == nil &&
			(img.Balances[0] != b.RPM || img.Balances[1] != b.TPM || img.Refilled != b.Refilled || img.TTL != b.TTL) {
			t.Errorf("read as %+v and as %+v", b, img)
		}
		for i, balance := range slices.Concat(img.Balances, extras(img.Extra)) {
			if i < 2 && img.Missing[i] {
				continue
			}
			if balance.Burst < 1 || balance.Refill < 1 || balance.Period < 1 || balance.Capacity < 1 {
				t.Errorf("accepted a limit of %+v", balance)
			}
		}
	})
}

func extras(named []bucket.Named) (all []bucket.Balance) {
	for _, n := range named {
		all = append(all, n.Balance)
	}
	return all
}

// attribute is of any type that DynamoDB has.
func attribute(kind byte, value string) types.AttributeValue {
	switch kind % 10 {
	case 0:
		return &types.AttributeValueMemberS{Value: value}
	case 1:
		return &types.AttributeValueMemberN{Value: value}
	case 2:
		return &types.AttributeValueMemberB{Value: []byte(value)}
	case 3:
		return &types.AttributeValueMemberBOOL{Value: true}
	case 4:
		return &types.AttributeValueMemberNULL{Value: true}
	case 5:
		return &types.AttributeValueMemberNS{Value: []string{value}}
	case 6:
		return &types.AttributeValueMemberSS{Value: []string{value}}
	case 7:
		return &types.AttributeValueMemberL{}
	case 8:
		return &types.AttributeValueMemberM{}
	}
	return codec.N(int64(len(value)))
}
