package lean

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// encoder writes one request as JSON.
type encoder struct {
	body    []byte
	table   string // the first table that the request names
	unusual bool   // the SDK has to write this request
}

func (e *encoder) reset() { e.body, e.table, e.unusual = append(e.body[:0], '{'), "", false }

// finish ends the request. It reports false for one that the SDK has to write.
func (e *encoder) finish() bool {
	e.body = append(e.body, '}')
	return !e.unusual
}

// unless makes a request unusual if it has something that this package does not know, or not all that the SDK
// wants. The SDK then writes it, or returns its own error.
func (e *encoder) unless(usual bool) {
	if !usual {
		e.unusual = true
	}
}

// comma separates a member or an element from the one before it.
func (e *encoder) comma() {
	if last := e.body[len(e.body)-1]; last != '{' && last != '[' {
		e.body = append(e.body, ',')
	}
}

// name writes the name of a member, which needs no escapes.
func (e *encoder) name(name string) {
	e.comma()
	e.body = append(append(append(e.body, '"'), name...), '"', ':')
}

// text writes a member if it is there.
func (e *encoder) text(name string, value *string) {
	if value != nil {
		e.name(name)
		e.string(*value)
	}
}

// enum writes a member if it is there.
func enum[T ~string](e *encoder, name string, value T) {
	if value != "" {
		e.name(name)
		e.string(string(value))
	}
}

// bool writes a member if it is there.
func (e *encoder) bool(name string, value *bool) {
	if value != nil {
		e.name(name)
		e.boolean(*value)
	}
}

func (e *encoder) boolean(value bool) {
	if value {
		e.body = append(e.body, "true"...)
	} else {
		e.body = append(e.body, "false"...)
	}
}

// names writes a member if it is there.
func (e *encoder) names(name string, values map[string]string) {
	if values == nil {
		return
	}
	e.name(name)
	e.body = append(e.body, '{')
	for key, value := range values {
		e.comma()
		e.string(key)
		e.body = append(e.body, ':')
		e.string(value)
	}
	e.body = append(e.body, '}')
}

// item writes a member if it is there.
func (e *encoder) item(name string, values map[string]types.AttributeValue) {
	if values != nil {
		e.name(name)
		e.attributes(values)
	}
}

func (e *encoder) attributes(values map[string]types.AttributeValue) {
	e.body = append(e.body, '{')
	for key, value := range values {
		e.comma()
		e.string(key)
		e.body = append(e.body, ':')
		e.value(value)
	}
	e.body = append(e.body, '}')
}

// value writes an attribute's value.
func (e *encoder) value(value types.AttributeValue) {
	switch v := value.(type) {
	case *types.AttributeValueMemberN:
		e.body = append(e.body, `{"N":`...)
		e.string(v.Value)
	case *types.AttributeValueMemberS:
		e.body = append(e.body, `{"S":`...)
		e.string(v.Value)
	case *types.AttributeValueMemberB:
		e.body = append(e.body, `{"B":`...)
		e.blob(v.Value)
	case *types.AttributeValueMemberBOOL:
		e.body = append(e.body, `{"BOOL":`...)
		e.boolean(v.Value)
	case *types.AttributeValueMemberNULL:
		e.body = append(e.body, `{"NULL":`...)
		e.boolean(v.Value)
	case *types.AttributeValueMemberM:
		e.body = append(e.body, `{"M":`...)
		e.attributes(v.Value)
	case *types.AttributeValueMemberL:
		e.body = append(e.body, `{"L":`...)
		list(e, v.Value, e.value)
	case *types.AttributeValueMemberSS:
		e.body = append(e.body, `{"SS":`...)
		list(e, v.Value, e.string)
	case *types.AttributeValueMemberNS:
		e.body = append(e.body, `{"NS":`...)
		list(e, v.Value, e.string)
	case *types.AttributeValueMemberBS:
		e.body = append(e.body, `{"BS":`...)
		list(e, v.Value, e.blob)
	default: // nil, or a kind that is newer than this package
		e.unusual = true
		return
	}
	e.body = append(e.body, '}')
}

// list writes a list of elements.
func list[T any](e *encoder, values []T, element func(T)) {
	e.body = append(e.body, '[')
	for _, value := range values {
		e.comma()
		element(value)
	}
	e.body = append(e.body, ']')
}

// blob writes bytes in base64, and null for nil as the SDK does.
func (e *encoder) blob(value []byte) {
	if value == nil {
		e.body = append(e.body, "null"...)
		return
	}
	e.body = append(e.body, '"')
	e.body = base64.StdEncoding.AppendEncode(e.body, value)
	e.body = append(e.body, '"')
}

// string writes a string. Bytes that are no UTF-8 become U+FFFD, as the SDK writes them.
func (e *encoder) string(value string) {
	e.body = append(e.body, '"')
	done := 0
	for i := 0; i < len(value); {
		c := value[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(value[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		e.body = append(e.body, value[done:i]...)
		switch {
		case c == '"', c == '\\':
			e.body = append(e.body, '\\', c)
		case c < ' ':
			e.body = append(e.body, '\\', 'u', '0', '0', "0123456789abcdef"[c>>4], "0123456789abcdef"[c&15])
		default:
			e.body = append(e.body, "\ufffd"...)
		}
		i += size
		done = i
	}
	e.body = append(append(e.body, value[done:]...), '"')
}
