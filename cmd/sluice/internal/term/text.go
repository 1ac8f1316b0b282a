package term

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/sluice-go/sluice/runtime/store"
)

// Quote returns text as it is if all of it can be seen, and else as a Go string literal. Commands print with
// it what was stored by others: a client may have chosen an id that holds an escape sequence or a newline.
func Quote(text string) string { return store.Quote(text) }

// Argument returns Quote's text as one word of a POSIX shell, for command lines to copy.
func Argument(text string) string { return store.Argument(text) }

// Escape writes characters of text that cannot be seen as in a Go string literal, except newlines and tabs.
func Escape(text string) string {
	if store.IsPlain(text) {
		return text
	}
	var out strings.Builder
	for rest := text; rest != ""; {
		r, size := utf8.DecodeRuneInString(rest)
		if part := rest[:size]; r == '\n' || r == '\t' || store.IsPlain(part) {
			out.WriteString(part)
		} else {
			literal := strconv.Quote(part)
			out.WriteString(literal[1 : len(literal)-1])
		}
		rest = rest[size:]
	}
	return out.String()
}

// JSON returns v as JSON in which all characters can be seen: encoding/json leaves DEL, C1 controls and
// bidirectional controls as they are. Without an indent it is one line. Neither form ends with a newline.
func JSON(v any, indent string) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	out.SetIndent("", indent)
	if err := out.Encode(v); err != nil {
		return nil, err
	}
	safe := make([]byte, 0, text.Len())
	for _, r := range strings.TrimSuffix(text.String(), "\n") {
		switch {
		case r == '\n' || strconv.IsPrint(r):
			safe = utf8.AppendRune(safe, r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			safe = fmt.Appendf(safe, `\u%04x\u%04x`, high, low)
		default:
			safe = fmt.Appendf(safe, `\u%04x`, r)
		}
	}
	return safe, nil
}
