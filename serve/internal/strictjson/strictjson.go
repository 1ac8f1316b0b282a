// Package strictjson reads the JSON of requests. It takes no unknown member, no member twice and nothing of
// another type than the caller asks for, and each mistake is an *Error with its place.
package strictjson

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Error is a mistake in a text.
type Error struct {
	Line, Column int    // from 1; a column is a byte
	Reason       string // what is wrong and what to do
}

// Error names the place and the mistake.
func (e *Error) Error() string { return fmt.Sprintf("%d:%d: %s", e.Line, e.Column, e.Reason) }

// Reader reads one text, from front to back.
type Reader struct {
	text  []byte
	whole string // text, of which strings are parts; "" for a large one, which they would keep in memory
	at    int
	name  int // where the name of the newest member begins
}

// mostMembers bounds an object. Each name is compared to those before it.
const mostMembers = 1_000

// small is the length of a text whose strings may keep it in memory, in bytes.
const small = 512

// NewReader returns a Reader of text.
func NewReader(text []byte) *Reader {
	r := &Reader{text: text}
	if len(text) <= small {
		r.whole = string(text)
	}
	return r
}

// Fail returns an *Error at the place of the next value.
func (r *Reader) Fail(format string, args ...any) error {
	r.space()
	return r.failAt(r.at, fmt.Sprintf(format, args...))
}

// failAt returns an *Error at an offset.
func (r *Reader) failAt(at int, reason string) error {
	e := &Error{Line: 1, Column: 1, Reason: reason}
	for _, c := range r.text[:at] {
		if e.Column++; c == '\n' {
			e.Line, e.Column = e.Line+1, 1
		}
	}
	return e
}

// space skips white space, and returns the byte behind it: 0 at the end.
func (r *Reader) space() byte {
	for ; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take skips white space and then c, if that is there.
func (r *Reader) take(c byte) bool {
	if r.space() != c || c == 0 {
		return false
	}
	r.at++
	return true
}

// Object reads an object. member reads the value of each member; what names it, for errors.
func (r *Reader) Object(what string, member func(name string) error) error {
	if !r.take('{') {
		return r.Fail("%s is no object: write {...}", what)
	}
	if r.take('}') {
		return nil
	}
	var few [8]string // most objects have fewer members
	names := few[:0]
	for {
		r.space()
		at := r.at
		name, err := r.textOr(what, "", " has a member without a name in quotes")
		if err != nil {
			return err
		}
		if slices.Contains(names, name) {
			return r.failAt(at, "member "+Quote(name)+" is there twice: remove one")
		}
		if names = append(names, name); len(names) > mostMembers {
			return r.failAt(at, fmt.Sprintf("%s has more than %d members: send fewer", what, mostMembers))
		}
		if !r.take(':') {
			return r.Fail("a colon is missing behind %s", Quote(name))
		}
		r.space()
		r.name = at
		if err := member(name); err != nil {
			return err
		}
		switch {
		case r.take('}'):
			return nil
		case !r.take(','):
			return r.Fail("a comma or a '}' is missing in %s", what)
		}
	}
}

// Unknown returns the error for the newest member, whose name has no meaning. cure says what to do. It is
// called before the member's value is read.
func (r *Reader) Unknown(name, cure string) error {
	return r.failAt(r.name, "member "+Quote(name)+" is unknown: "+cure)
}

// Array reads an array. element reads each of its elements; what names it, for errors.
func (r *Reader) Array(what string, element func(i int) error) error {
	if !r.take('[') {
		return r.Fail("%s is no array: write [...]", what)
	}
	if r.take(']') {
		return nil
	}
	for i := 0; ; i++ {
		r.space()
		if err := element(i); err != nil {
			return err
		}
		switch {
		case r.take(']'):
			return nil
		case !r.take(','):
			return r.Fail("a comma or a ']' is missing in %s", what)
		}
	}
}

// Text reads a string; what names it, for errors.
func (r *Reader) Text(what string) (string, error) { return r.textOr(what, "", noText) }

// TextOf is Text of something that belongs to a member, such as "the id of ".
func (r *Reader) TextOf(what, member string) (string, error) { return r.textOr(what, member, noText) }

// noText is wrong with a value that should be a string.
const noText = " is no text in quotes"

// textOr is Text with what is wrong with a value that is no string.
func (r *Reader) textOr(what, member, wrong string) (string, error) {
	if r.space() != '"' {
		if member != "" {
			what += Quote(member)
		}
		return "", r.Fail("%s", what+wrong)
	}
	begin, escaped := r.at, false
	for r.at++; r.at < len(r.text); r.at++ {
		switch c := r.text[r.at]; {
		case c == '"':
			r.at++
			return r.unquote(begin, escaped)
		case c == '\\':
			escaped = true
			r.at++ // what it escapes is no end
		case c < ' ':
			return "", r.failAt(r.at, "a text has a control character: write it as \\u00XX")
		}
	}
	r.at = min(r.at, len(r.text))
	return "", r.failAt(begin, "a text has no closing quotation mark")
}

// unquote returns the string that begins at an offset and ends before r.at.
func (r *Reader) unquote(begin int, escaped bool) (string, error) {
	quoted := r.text[begin:r.at]
	switch {
	case !utf8.Valid(quoted):
		return "", r.failAt(begin, "a text is no UTF-8: encode it")
	case escaped:
		return r.unescape(begin)
	case r.whole != "":
		return r.whole[begin+1 : r.at-1], nil
	}
	return string(quoted[1 : len(quoted)-1]), nil
}

// unescape is unquote of a string with escapes.
func (r *Reader) unescape(begin int) (s string, err error) {
	if err := json.Unmarshal(r.text[begin:r.at], &s); err != nil {
		return "", r.failAt(begin, "a text has an escape that JSON does not have")
	}
	if strings.ContainsRune(s, utf8.RuneError) { // two such texts would become one
		return "", r.failAt(begin, "a text has an escape that is no character: write both halves of a pair")
	}
	return s, nil
}

// Literal is a number or a string as it was written.
type Literal struct {
	Text   string // without quotation marks
	Quoted bool   // it is a string
}

// Scalar reads a number or a string, the value of a member.
func (r *Reader) Scalar(member string) (Literal, error) {
	if r.space() == '"' {
		s, err := r.TextOf("", member)
		return Literal{s, true}, err
	}
	begin := r.at
	for r.at < len(r.text) && isNumeric(r.text[r.at]) {
		r.at++
	}
	text := r.text[begin:r.at]
	switch {
	case !json.Valid(text):
		r.at = begin
		return Literal{}, r.Fail("%s is neither a number nor a text in quotes", Quote(member))
	case r.whole != "":
		return Literal{r.whole[begin:r.at], false}, nil
	}
	return Literal{string(text), false}, nil
}

func isNumeric(c byte) bool {
	return '0' <= c && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}

// End returns an error unless the text is at its end.
func (r *Reader) End() error {
	if r.space(); r.at < len(r.text) {
		return r.Fail("there is more behind the end: remove it")
	}
	return nil
}

// mostQuoted bounds how much of a text an error repeats, in bytes.
const mostQuoted = 40

// Quote returns a text of a request for an error: in quotes, in ASCII, and cut if it is long.
func Quote(s string) string {
	if len(s) > mostQuoted {
		cut := mostQuoted
		for cut > 0 && !utf8.RuneStart(s[cut]) {
			cut--
		}
		return strconv.QuoteToASCII(s[:cut] + "...")
	}
	return strconv.QuoteToASCII(s)
}
