package review

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// item is one of DynamoDB's.
type item = map[string]types.AttributeValue

// stored returns the bucket that a process of s creates in an engine, of the entity that it calls for.
func stored(t *testing.T, engine *memdynamo.Engine, s subject) item {
	t.Helper()
	p := s.process(t, limittest.StoreOn(t, engine))
	if _, err := p.acquire(1); err != nil {
		t.Fatal(err)
	}
	resource := s.resource
	if resource == templates.Voice {
		resource += "/" + typicalVoice
	}
	out, err := engine.Client().GetItem(t.Context(),
		&dynamodb.GetItemInput{TableName: aws.String(limittest.Table), Key: item{
			"PK": &types.AttributeValueMemberS{Value: "ENTITY#" + s.kind + "-" + uuid},
			"SK": &types.AttributeValueMemberS{Value: "#BUCKET#" + resource},
		}})
	if err != nil || out.Item == nil {
		t.Fatal(out, err)
	}
	return out.Item
}

// measured returns the size of an item in bytes, by the number of those that are left until it costs another
// unit.
func measured(t *testing.T, engine *memdynamo.Engine, bucket item) int {
	t.Helper()
	client := engine.Client()
	billed := func(padding int) float64 {
		bucket["p"] = &types.AttributeValueMemberS{Value: strings.Repeat("x", padding)}
		key := item{"PK": bucket["PK"], "SK": bucket["SK"]}
		if _, err := client.DeleteItem(t.Context(),
			&dynamodb.DeleteItemInput{TableName: aws.String(limittest.Table), Key: key}); err != nil {
			t.Fatal(err)
		}
		out, err := client.PutItem(t.Context(), &dynamodb.PutItemInput{
			TableName: aws.String(
				limittest.Table), Item: bucket, ReturnConsumedCapacity: types.ReturnConsumedCapacityIndexes,
		})
		if err != nil {
			t.Fatal(err)
		}
		return *out.ConsumedCapacity.Table.CapacityUnits
	}
	defer delete(bucket, "p")
	units := billed(0)
	few, many := 0, unitBytes // few cost no more, many do
	for many-few > 1 {
		if half := (few + many) / 2; billed(half) > units {
			many = half
		} else {
			few = half
		}
	}
	return int(units)*unitBytes - len("p") - few
}

// with sets numbers of a bucket: shared ones, and by their ends those of all limits.
func (s subject) with(t *testing.T, bucket item, numbers map[string]string) {
	t.Helper()
	for name, n := range numbers {
		set := 0
		for attr := range bucket {
			if attr == name || strings.HasPrefix(attr, "b_") && strings.HasSuffix(attr, name) {
				bucket[attr] = &types.AttributeValueMemberN{Value: n}
				set++
			}
		}
		if set == 0 {
			t.Fatalf("%s has no %s", s.resource, name)
		}
	}
}

// TestSizes holds sizes against items that the store wrote, to the byte: full ones, and ones whose numbers
// are as long as they get.
func TestSizes(t *testing.T) {
	for _, s := range subjects() {
		t.Run(s.resource+" "+s.kind, func(t *testing.T) {
			r, c := modelOf(t, s.schema, s.resource, s.kind)
			engine := memdynamo.New()
			addVoice(t, engine)
			bucket := stored(t, engine, s)

			// As created, by revision 89,999, and full; no instant ends with zeros.
			s.with(t, bucket, map[string]string{"rf": "1800000000001", "ttl": "1800000001",
				"cv": "8999900000000000000", "_tc": "0"})
			for _, l := range r.Limits {
				bucket[l.Attrs.Tokens] = bucket[l.Attrs.Burst]
				if l.Window != nil {
					bucket[l.Attrs.Ends] = bucket["rf"]
				}
			}
			if got, want := measured(t, engine, bucket), sizeOf(r, c, len(uuid)).New; got != want {
				t.Errorf("a new item takes %d bytes, the document says %d", got, want)
			}

			s.with(t, bucket, map[string]string{"ttl": "253402300799", "cv": "9000012345678912345",
				"_tc": "9223372036854775000"})
			for i, l := range r.Limits {
				n := slices.MaxFunc(c.All(i), func(a, b schema.Numbers) int { return cmp.Compare(a.Burst, b.Burst) })
				for attr, number := range map[string]int64{l.Attrs.Capacity: n.Stored(n.Capacity),
					l.Attrs.Burst: n.Stored(n.Burst), l.Attrs.Refill: n.Stored(n.Refill)} {
					bucket[attr] = &types.AttributeValueMemberN{Value: strconv.FormatInt(number, 10)}
				}
				digits := len(strconv.FormatInt(n.Burst*milli, 10))
				bucket[l.Attrs.Tokens] = &types.AttributeValueMemberN{Value: "-" + strings.Repeat("9", digits)}
			}
			if r.OnPlans {
				bucket["po"] = bucket["entity_id"] // of an entity with an id as long
			}
			want := sizeOf(r, c, len(uuid)).Most
			if got := measured(t, engine, bucket); got != want {
				t.Errorf("an item takes %d bytes at most, the document says %d", got, want)
			}

			// A bucket that was made of per-limit items also has these.
			carried := want
			for _, l := range r.Limits {
				bucket["m_"+l.Name] = &types.AttributeValueMemberN{Value: "9223372036854775807"}
				carried += len("m_") + len(l.Name) + carriedMost
			}
			if got := measured(t, engine, bucket); got != carried {
				t.Errorf("with what was carried over it takes %d bytes, the document says %d", got, carried)
			}
			for _, l := range r.Limits {
				delete(bucket, "m_"+l.Name)
			}

			// A byte more anywhere is seen.
			bucket["op"] = &types.AttributeValueMemberS{Value: "thirteenbytes"}
			if got := measured(t, engine, bucket); got != want+1 {
				t.Errorf("a byte more makes %d bytes, want %d", got, want+1)
			}
		})
	}
}

// sampleOf returns a resource that limits users by so many limits, with names of so many bytes.
func sampleOf(limits, letters int) (*model.Resource, *model.Charged) {
	r := &schema.Resource{Name: "api", GoName: "API"}
	c := &model.Charged{Kind: &model.Kind{Name: "user", Prefix: "user-"}}
	for i := range limits {
		r.Limits = append(r.Limits, &schema.Limit{Name: fmt.Sprintf("l%0*d", letters-1, i), GoName: "L"})
		c.Numbers = append(c.Numbers, schema.Numbers{Capacity: 100, Burst: 100, Refill: 100, Period: time.Minute})
	}
	return model.ResourceOf(r), c
}

// TestSizesMeasured: DynamoDB Local was measured to take about 230, 410 and 725 bytes for 2, 5 and 10 limits,
// with short ids.
func TestSizesMeasured(t *testing.T) {
	for limits, want := range map[int]int{2: 230, 5: 410, 10: 725} {
		r, c := sampleOf(limits, 3)
		if got := sizeOf(r, c, 3).New; got < want*89/100 || got > want*111/100 {
			t.Errorf("%d limits take %d bytes, about %d were measured", limits, got, want)
		}
	}
}

// TestPassing holds when an item passes 1 KB against sizes.
func TestPassing(t *testing.T) {
	for _, tc := range []struct {
		limits int
		want   string
	}{
		{1, "with 11 more limits"},
		{2, "with ids of 250 bytes or 10 more limits"},
		{10, "with ids of 60 bytes or 2 more limits"},
		{11, "with ids of 37 bytes or 1 more limit"},
		{12, "with ids of 13 bytes"},
		{24, "with every id"},
	} {
		r, c := sampleOf(tc.limits, 3)
		if got := passing(r, c); got != tc.want {
			t.Errorf("%d limits pass %s, want %s", tc.limits, got, tc.want)
		}
		if id, ok := idPassing(r, c); ok && (sizeOf(r, c, id).Most <= unitBytes || id > 1 &&
			sizeOf(r, c, id-1).Most > unitBytes) {
			t.Errorf("%d limits do not pass 1 KB with ids of %d bytes, or with shorter ones", tc.limits, id)
		}
	}
	for limits := 1; limits < 20; limits++ {
		r, c := sampleOf(limits, 3)
		if more := limitsPassing(r, c); more > 0 {
			over, overNumbers := sampleOf(limits+more, 3)
			under, underNumbers := sampleOf(limits+more-1, 3)
			if sizeOf(over, overNumbers, typicalID).Most <= unitBytes ||
				sizeOf(under, underNumbers, typicalID).Most > unitBytes {
				t.Errorf("%d limits do not pass 1 KB with %d more, or with less", limits, more)
			}
		}
	}
}

// TestReadsTakeOneUnit: whatever fits DynamoDB's expressions makes no item of more than 4 KB, which is what a
// read unit pays for.
func TestReadsTakeOneUnit(t *testing.T) {
	const readBytes, longestName = 4 * unitBytes, 32
	largest := 0
	for letters := 3; letters <= longestName; letters++ {
		for limits := 1; ; limits++ {
			r, c := sampleOf(limits, letters)
			fits := true
			for _, p := range expr.Paths(r) {
				fits = fits && len(p.Update) <= expr.MaxBytes && len(p.Condition) <= expr.MaxBytes
			}
			if !fits {
				break
			}
			largest = max(largest, sizeOf(r, c, mostID).Most)
		}
	}
	if largest > readBytes {
		t.Errorf("an item may take %d bytes", largest)
	}
	if largest < readBytes/2 {
		t.Errorf("the largest item takes %d bytes: the test looks at small ones only", largest)
	}
}
