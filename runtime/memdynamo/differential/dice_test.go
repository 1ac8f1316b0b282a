package differential_test

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"pgregory.net/rapid"
)

// dice makes the choices. The first of each is the plainest: rapid shrinks towards it.
type dice struct {
	t *rapid.T
	// trouble is how much goes wrong: a fault that is to happen once in n does so trouble times as often.
	trouble int
	// left is how many more faults the operation may have: of several at once, which is found first is anybody's
	// guess.
	left *int
}

// upTo returns 0 to n-1.
func (d dice) upTo(n int) int { return rapid.IntRange(0, n-1).Draw(d.t, "choice") }

// oneIn is true about once in n.
func (d dice) oneIn(n int) bool { return d.upTo(n) == n-1 }

// fault is true about trouble times in n, while the operation may have more faults.
func (d dice) fault(n int) bool {
	if *d.left == 0 || !d.oneIn(max(2, n/d.trouble)) {
		return false
	}
	*d.left--
	return true
}

func pick[T any](d dice, from ...T) T { return from[d.upTo(len(from))] }

// some is one or more, n at most, of from, in any order.
func some[T any](d dice, n int, from []T) []T {
	mixed := rapid.Permutation(from).Draw(d.t, "order")
	return mixed[:1+d.upTo(min(n, len(mixed)))]
}

var (
	numbers = []string{
		"1", "2", "3", "0", "-1", "10", "1.5", "0.1", "-0", "1.0", "1e2", "100.00", "1E+2", "0.5e1", "-3.25",
		"12345678901234567890", "9223372036854775807", "9223372036854775808", "-9223372036854775808",
		"99999999999999999999999999999999999999", "-99999999999999999999999999999999999999",
		"0.00000000000000000001",
		"9.9999999999999999999999999999999999999e125", "1e125", "-1e125", "1e-130", "-1e-130", "123.456e-7",
		"1e-10",
		"1000000000000000000000000000000000000000", "1.00000000000000000000000000000000000000000", "00012", "+7",
	}
	badNumbers = []string{
		"abc", "", "1e126", "-1e126", "1e-131", "123456789012345678901234567890123456789", "0x10", "1e", " 1",
		"NaN", "Infinity",
		"1_000", "--1", "1.2.3", "1e999999999", "0e999999999", "1e-999999999",
	}
	texts = []string{"a", "b", "ab", "abc", "", "B", "é", "日本", "a b", "\U0001F600",
		strings.Repeat("s", 50)}
	binaries = []string{"a", "b", "ab", "", "\x00", "\xff", "\x00\x01", "\x80abc"}
	kinds    = []string{"N", "S", "M", "L", "SS", "NS", "BS", "B", "BOOL", "NULL"}
)

func (d dice) number() string {
	if d.oneIn(3) {
		return pick(d, numbers...)
	}
	return pick(d, numbers[:4]...)
}

// text is a string, now and then one that takes a write over the next unit of capacity, or just not.
func (d dice) text() string {
	switch {
	case d.oneIn(20):
		return strings.Repeat("x", pick(d, 1, 2, 4, 5, 9)<<10-d.upTo(60))
	case d.oneIn(2):
		return pick(d, texts...)
	}
	return pick(d, texts[:4]...)
}

// value is a value of that kind, or of any if it is empty; depth bounds its nesting.
func (d dice) value(kind string, depth int) types.AttributeValue {
	if kind == "" || d.fault(60) {
		kind = pick(d, kinds...)
	}
	if d.fault(120) {
		return d.badValue()
	}
	if depth == 0 && (kind == "M" || kind == "L") {
		kind = "N"
	}
	switch kind {
	case "S":
		return &types.AttributeValueMemberS{Value: d.text()}
	case "N":
		return &types.AttributeValueMemberN{Value: d.number()}
	case "B":
		return &types.AttributeValueMemberB{Value: []byte(pick(d, binaries...))}
	case "BOOL":
		return &types.AttributeValueMemberBOOL{Value: d.oneIn(2)}
	case "NULL":
		return &types.AttributeValueMemberNULL{Value: true}
	case "SS":
		return &types.AttributeValueMemberSS{Value: some(d, 4, texts)}
	case "NS":
		return &types.AttributeValueMemberNS{Value: some(d, 3, []string{"1", "2", "3", "-1.5", "1e2",
			"99999999999999999999"})}
	case "BS":
		var set [][]byte
		for _, b := range some(d, 3, binaries) {
			set = append(set, []byte(b))
		}
		return &types.AttributeValueMemberBS{Value: set}
	case "L":
		list := &types.AttributeValueMemberL{Value: []types.AttributeValue{}}
		for range d.upTo(4) {
			list.Value = append(list.Value, d.value(pick(d, "N", "S", "M", ""), depth-1))
		}
		return list
	default:
		m := &types.AttributeValueMemberM{Value: item{}}
		for _, a := range mapAttributes {
			if d.oneIn(2) {
				m.Value[a.name] = d.value(a.kind, depth-1)
			}
		}
		return m
	}
}

// badValue is one that DynamoDB refuses, or might.
func (d dice) badValue() types.AttributeValue {
	switch d.upTo(8) {
	case 0:
		return &types.AttributeValueMemberN{Value: pick(d, badNumbers...)}
	case 1:
		return &types.AttributeValueMemberSS{Value: []string{}}
	case 2:
		return &types.AttributeValueMemberSS{Value: []string{"a", "b", "a"}}
	case 3:
		return &types.AttributeValueMemberNS{Value: []string{"1", "1.0"}}
	case 4:
		return &types.AttributeValueMemberNULL{Value: false}
	case 5:
		return &types.AttributeValueMemberNS{Value: []string{"1", pick(d, badNumbers...)}}
	case 6:
		return &types.AttributeValueMemberBS{Value: [][]byte{{1}, {1}}}
	default:
		return nested(pick(d, 31, 32, 33, 40))
	}
}

// nested returns a number inside that many lists.
func nested(depth int) types.AttributeValue {
	var v types.AttributeValue = &types.AttributeValueMemberN{Value: "1"}
	for range depth {
		v = &types.AttributeValueMemberL{Value: []types.AttributeValue{v}}
	}
	return v
}
