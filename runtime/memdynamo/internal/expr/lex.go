package expr

import "unicode/utf8"

// kind is what a token is.
type kind uint8

const (
	tEOF kind = iota
	tName
	tNameRef  // #n
	tValueRef // :v
	tNumber
	tEQ
	tNE
	tLT
	tLE
	tGT
	tGE
	tPlus
	tMinus
	tLParen
	tRParen
	tLBracket
	tRBracket
	tDot
	tComma
	tAnd
	tOr
	tNot
	tBetween
	tIn
	tSet
	tRemove
	tAdd
	tDelete
	tOther // a character that no expression has
)

// token is a part of a text: what it is, and where.
type token struct {
	kind       kind
	start, end int
}

// lex returns the first token of text at or after pos.
func lex(text string, pos int) token {
	for pos < len(text) && (text[pos] == ' ' || text[pos] == '\t' || text[pos] == '\n' || text[pos] == '\r') {
		pos++
	}
	if pos == len(text) {
		return token{tEOF, pos, pos}
	}
	c := text[pos]
	switch {
	case isLetter(c):
		end := wordEnd(text, pos+1)
		return token{keyword(text[pos:end]), pos, end}
	case c == '#' || c == ':':
		if end := wordEnd(text, pos+1); end > pos+1 {
			return token{refKind(c), pos, end}
		}
	case isDigit(c):
		end := pos + 1
		for c != '0' && end < len(text) && isDigit(text[end]) { // a leading zero is a number of its own
			end++
		}
		return token{tNumber, pos, end}
	case pos+1 < len(text):
		if k := operator2(c, text[pos+1]); k != tOther {
			return token{k, pos, pos + 2}
		}
	}
	if k := operator1(c); k != tOther {
		return token{k, pos, pos + 1}
	}
	_, width := utf8.DecodeRuneInString(text[pos:])
	return token{tOther, pos, pos + width}
}

func refKind(c byte) kind {
	if c == '#' {
		return tNameRef
	}
	return tValueRef
}

func operator2(c, d byte) kind {
	switch {
	case c == '<' && d == '>':
		return tNE
	case c == '<' && d == '=':
		return tLE
	case c == '>' && d == '=':
		return tGE
	}
	return tOther
}

func operator1(c byte) kind {
	switch c {
	case '=':
		return tEQ
	case '<':
		return tLT
	case '>':
		return tGT
	case '+':
		return tPlus
	case '-':
		return tMinus
	case '(':
		return tLParen
	case ')':
		return tRParen
	case '[':
		return tLBracket
	case ']':
		return tRBracket
	case '.':
		return tDot
	case ',':
		return tComma
	}
	return tOther
}

// keyword returns the kind of a word: keywords are keywords in every expression, in any case.
func keyword(word string) kind {
	if len(word) > len("BETWEEN") {
		return tName
	}
	var upper [len("BETWEEN")]byte
	for i := range len(word) {
		upper[i] = word[i] &^ ('a' - 'A') // no other byte of a word becomes a capital letter
	}
	switch string(upper[:len(word)]) {
	case "AND":
		return tAnd
	case "OR":
		return tOr
	case "NOT":
		return tNot
	case "BETWEEN":
		return tBetween
	case "IN":
		return tIn
	case "SET":
		return tSet
	case "REMOVE":
		return tRemove
	case "ADD":
		return tAdd
	case "DELETE":
		return tDelete
	}
	return tName
}

func wordEnd(text string, pos int) int {
	for pos < len(text) && (isLetter(text[pos]) || isDigit(text[pos]) || text[pos] == '_') {
		pos++
	}
	return pos
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
