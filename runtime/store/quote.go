package store

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Quote returns text as it is if all of it can be seen, and else as a Go string literal. Errors and commands
// write ids with it: an id that holds an escape sequence, a newline or a bidirectional control cannot forge a
// line, or the line's order. No stored id begins with a quotation mark, so the two forms differ.
func Quote(text string) string {
	if IsPlain(text) {
		return text
	}
	return strconv.Quote(text)
}

// IsPlain reports whether text is valid UTF-8 of characters that can be seen, and of spaces.
func IsPlain(text string) bool {
	return utf8.ValidString(text) &&
		strings.IndexFunc(text, func(r rune) bool { return !strconv.IsPrint(r) }) < 0
}

// mostShown is the most runes of a caller's text that an error shows.
const mostShown = 40

// shorten cuts text after mostShown runes.
func shorten(text string) string {
	n := 0
	for i := range text {
		if n == mostShown {
			return text[:i] + "..."
		}
		n++
	}
	return text
}

// Argument returns Quote's text as one word of a POSIX shell. Errors and commands write it into command lines
// that they propose.
func Argument(text string) string {
	word := Quote(text)
	if word != "" && strings.IndexFunc(word, needsQuotes) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// needsQuotes reports whether a shell may take r for something else than a part of a word.
func needsQuotes(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("_-./:@%+=,", r)
}

// CheckText returns which character of text, an id or an argument, can change how a terminal or a log shows
// the text around it, and its byte offset. It returns an empty string if there is none.
func CheckText(text string) string {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c >= 0x7f { // most ids are printable ASCII
			return checkRunes(text, i)
		}
	}
	return ""
}

// checkRunes is CheckText for a text that is printable ASCII before start.
func checkRunes(text string, start int) string {
	for i := start; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		what := ""
		switch {
		case r == utf8.RuneError && size == 1:
			return fmt.Sprintf("is not valid UTF-8 at byte offset %d", i)
		case unicode.IsControl(r):
			what = "control character"
		case unicode.Is(unicode.Bidi_Control, r):
			what = "bidirectional control"
		case r == '\u2028' || r == '\u2029':
			what = "line or paragraph separator"
		}
		if what != "" {
			return fmt.Sprintf("has the %s %U at byte offset %d", what, r, i)
		}
		i += size
	}
	return ""
}
