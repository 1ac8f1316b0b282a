package lean

import (
	"encoding/base64"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// decoder reads one reply. It knows JSON as DynamoDB writes it: no escapes, no null, no member twice, a value
// of one kind, nothing after the end. All else is unusual: its methods report false then, and the SDK decodes
// the reply. So what this decoder returns is right, or it returns nothing.
type decoder struct {
	text   []byte
	at     int // the next byte
	fields []field
	names  []byte // of fields, with the digits of numbers
}

// field is an attribute of an item that is being read.
type field struct {
	name, value []byte // in the text; the value is that of a string or of a number
	kind        byte   // S, N, or 0
	other       types.AttributeValue
}

// release keeps the memory for the next reply, unless that is a lot.
func (d *decoder) release() {
	if cap(d.text) > kept {
		d.text, d.names, d.fields = nil, nil, nil
	}
	clear(d.fields)
}

// next returns the next byte that is not white space, and 0 at the end.
func (d *decoder) next() byte {
	for d.at < len(d.text) {
		switch c := d.text[d.at]; c {
		case ' ', '\t', '\r', '\n':
			d.at++
		default:
			return c
		}
	}
	return 0
}

// take moves past c if it is next.
func (d *decoder) take(c byte) bool {
	if d.next() != c {
		return false
	}
	d.at++
	return true
}

// ended reports that nothing is left, not even white space.
func (d *decoder) ended() bool { return d.at == len(d.text) }

// raw reads a string without escapes. The result is a part of the text.
func (d *decoder) raw() ([]byte, bool) {
	if !d.take('"') {
		return nil, false
	}
	for i := d.at; i < len(d.text); i++ {
		switch c := d.text[i]; {
		case c == '"':
			value := d.text[d.at:i]
			d.at = i + 1
			return value, true
		case c == '\\', c < ' ':
			return nil, false
		}
	}
	return nil, false
}

// string reads a string into memory of its own.
func (d *decoder) string() (string, bool) {
	value, ok := d.raw()
	return string(value), ok
}

// object reads an object, whose members are read by member.
func (d *decoder) object(member func(name []byte) bool) bool {
	if !d.take('{') {
		return false
	}
	if d.take('}') {
		return true
	}
	for {
		name, ok := d.raw()
		if !ok || !d.take(':') || !member(name) {
			return false
		}
		if !d.take(',') {
			return d.take('}')
		}
	}
}

// array reads an array, whose elements are read by element.
func (d *decoder) array(element func() bool) bool {
	if !d.take('[') {
		return false
	}
	if d.take(']') {
		return true
	}
	for {
		if !element() {
			return false
		}
		if !d.take(',') {
			return d.take(']')
		}
	}
}

// bool reads true or false.
func (d *decoder) bool() (value, ok bool) {
	d.next()
	switch rest := d.text[d.at:]; {
	case len(rest) >= 4 && string(rest[:4]) == "true":
		d.at += 4
		return true, true
	case len(rest) >= 5 && string(rest[:5]) == "false":
		d.at += 5
		return false, true
	}
	return false, false
}

// float reads a number of digits and at most one point, without leading zeros.
func (d *decoder) float() (float64, bool) {
	d.next()
	begin, points := d.at, 0
	for ; d.at < len(d.text); d.at++ {
		c := d.text[d.at]
		if c == '.' && d.at > begin {
			points++
		} else if c < '0' || c > '9' {
			break
		}
	}
	digits := d.text[begin:d.at]
	if len(digits) == 0 || points > 1 || digits[len(digits)-1] == '.' ||
		len(digits) > 1 && digits[0] == '0' && digits[1] != '.' {
		return 0, false
	}
	value, err := strconv.ParseFloat(string(digits), 64)
	return value, err == nil
}

// deepest is how deep values may be nested in each other. DynamoDB allows 32 levels.
const deepest = 40

// item reads an item. Its numbers and the names of its attributes share one string: numbers are read and
// dropped, whereas a string may be kept for long and has memory of its own.
func (d *decoder) item() (map[string]types.AttributeValue, bool) {
	d.fields, d.names = d.fields[:0], d.names[:0]
	numbers, strings := 0, 0
	if !d.object(func(name []byte) bool {
		f := field{name: name}
		ok := d.field(&f)
		switch f.kind {
		case 'N':
			numbers++
			d.names = append(append(d.names, name...), f.value...)
		case 'S':
			strings++
			d.names = append(d.names, name...)
		default:
			d.names = append(d.names, name...)
		}
		d.fields = append(d.fields, f)
		return ok
	}) {
		return nil, false
	}
	shared, begin := string(d.names), 0
	cut := func(n int) string {
		begin += n
		return shared[begin-n : begin]
	}
	item := make(map[string]types.AttributeValue, len(d.fields))
	ofN, ofS := make([]types.AttributeValueMemberN, 0, numbers), make([]types.AttributeValueMemberS, 0, strings)
	for i := range d.fields {
		f := &d.fields[i]
		name := cut(len(f.name))
		switch f.kind {
		case 'N':
			ofN = append(ofN, types.AttributeValueMemberN{Value: cut(len(f.value))})
			item[name] = &ofN[len(ofN)-1]
		case 'S':
			ofS = append(ofS, types.AttributeValueMemberS{Value: string(f.value)})
			item[name] = &ofS[len(ofS)-1]
		default:
			item[name] = f.other
		}
	}
	return item, true
}

// field reads the value of an attribute into f.
func (d *decoder) field(f *field) (ok bool) {
	begin := d.at
	kind, ok := d.kind()
	if ok && (string(kind) == "N" || string(kind) == "S") {
		f.kind = kind[0]
		f.value, ok = d.raw()
		return ok && d.take('}')
	}
	d.at = begin
	f.other, ok = d.value(deepest)
	return ok
}

// kind reads the beginning of a value, up to its kind.
func (d *decoder) kind() ([]byte, bool) {
	if !d.take('{') {
		return nil, false
	}
	kind, ok := d.raw()
	return kind, ok && d.take(':')
}

// value reads a value into memory of its own. depth is how many more may be nested in it.
func (d *decoder) value(depth int) (types.AttributeValue, bool) {
	kind, ok := d.kind()
	if !ok || depth == 0 {
		return nil, false
	}
	var value types.AttributeValue
	switch string(kind) {
	case "S":
		v := &types.AttributeValueMemberS{}
		v.Value, ok = d.string()
		value = v
	case "N":
		v := &types.AttributeValueMemberN{}
		v.Value, ok = d.string()
		value = v
	case "B":
		v := &types.AttributeValueMemberB{}
		v.Value, ok = d.blob()
		value = v
	case "BOOL":
		v := &types.AttributeValueMemberBOOL{}
		v.Value, ok = d.bool()
		value = v
	case "NULL":
		v := &types.AttributeValueMemberNULL{}
		v.Value, ok = d.bool()
		value = v
	case "SS":
		v := &types.AttributeValueMemberSS{}
		v.Value, ok = elements(d, d.string)
		value = v
	case "NS":
		v := &types.AttributeValueMemberNS{}
		v.Value, ok = elements(d, d.string)
		value = v
	case "BS":
		v := &types.AttributeValueMemberBS{}
		v.Value, ok = elements(d, d.blob)
		value = v
	case "L":
		v := &types.AttributeValueMemberL{}
		v.Value, ok = elements(d, func() (types.AttributeValue, bool) { return d.value(depth - 1) })
		value = v
	case "M":
		v := &types.AttributeValueMemberM{Value: map[string]types.AttributeValue{}}
		ok = d.object(func(name []byte) bool {
			inner, ok := d.value(depth - 1)
			v.Value[string(name)] = inner
			return ok
		})
		value = v
	default:
		return nil, false
	}
	return value, ok && d.take('}')
}

// elements reads an array.
func elements[T any](d *decoder, element func() (T, bool)) ([]T, bool) {
	all := []T{}
	ok := d.array(func() bool {
		one, ok := element()
		all = append(all, one)
		return ok
	})
	return all, ok
}

// blob reads bytes in base64.
func (d *decoder) blob() ([]byte, bool) {
	value, ok := d.raw()
	if !ok {
		return nil, false
	}
	decoded := make([]byte, base64.StdEncoding.DecodedLen(len(value)))
	n, err := base64.StdEncoding.Decode(decoded, value)
	return decoded[:n], err == nil
}
