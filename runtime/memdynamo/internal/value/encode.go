package value

import (
	"encoding/base64"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Append appends v as JSON: {"S":"x"}.
func Append(b []byte, v Value) []byte {
	b = append(b, `{"`...)
	b = append(b, v.Kind().String()...)
	b = append(b, `":`...)
	switch v := v.(type) {
	case String:
		b = AppendString(b, string(v))
	case Number:
		b = appendNumber(b, v)
	case Binary:
		b = appendBinary(b, string(v))
	case Bool:
		b = strconv.AppendBool(b, bool(v))
	case Null:
		b = append(b, "true"...)
	case Strings:
		b = appendArray(b, v, AppendString)
	case Numbers:
		b = appendArray(b, v, appendNumber)
	case Binaries:
		b = appendArray(b, v, appendBinary)
	case List:
		b = appendArray(b, v, Append)
	case Map:
		b = AppendMap(b, v)
	}
	return append(b, '}')
}

// usual is how many bytes an attribute mostly has as JSON. Growing for each would allocate twice as many.
const usual = 40

// AppendMap appends the item as JSON, attributes in the order of their names: {"a":{"S":"x"}}.
func AppendMap(b []byte, m Map) []byte {
	names := make([]string, 0, len(m)) // slices.Sorted would grow it step by step
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	b = append(slices.Grow(b, usual*len(m)), '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = AppendString(b, name)
		b = append(b, ':')
		b = Append(b, m[name])
	}
	return append(b, '}')
}

func appendArray[T any](b []byte, elements []T, appendOne func([]byte, T) []byte) []byte {
	b = append(b, '[')
	for i, e := range elements {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendOne(b, e)
	}
	return append(b, ']')
}

func appendNumber(b []byte, n Number) []byte {
	b = append(b, '"')
	b = n.append(b)
	return append(b, '"')
}

func appendBinary(b []byte, s string) []byte {
	b = append(b, '"')
	b = base64.StdEncoding.AppendEncode(b, []byte(s))
	return append(b, '"')
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become U+FFFD.
func AppendString(b []byte, s string) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0 // of what is not yet appended
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				b = append(b, s[start:i]...)
				b = append(b, "\uFFFD"...)
				start = i + 1
			}
			i += size
			continue
		}
		if c < ' ' || c == '"' || c == '\\' {
			b = append(b, s[start:i]...)
			if c < ' ' {
				b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
			} else {
				b = append(b, '\\', c)
			}
			start = i + 1
		}
		i++
	}
	b = append(b, s[start:]...)
	return append(b, '"')
}
