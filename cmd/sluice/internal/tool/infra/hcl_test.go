package infra_test

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// hclBlock is a block of a Terraform configuration, or all of it.
type hclBlock struct {
	kind       string
	labels     []string
	attributes map[string]any // string, int64, bool, []any, map[string]any or expression
	blocks     []*hclBlock
}

// expression is a value that is not written out.
type expression string

// all returns the blocks of a kind whose first labels are these.
func (b *hclBlock) all(kind string, labels ...string) []*hclBlock {
	var found []*hclBlock
	for _, in := range b.blocks {
		if in.kind == kind && len(in.labels) >= len(labels) && slices.Equal(in.labels[:len(labels)], labels) {
			found = append(found, in)
		}
	}
	return found
}

// hclReader reads the part of HCL that our configuration uses: templates end with their line, and only values
// that end with their line have operators. It returns such values unparsed. TestTerraform asks Terraform
// itself, if it is installed.
type hclReader struct {
	t    *testing.T
	rest string
}

// parseHCL returns the blocks of a configuration.
func parseHCL(t *testing.T, text string) *hclBlock {
	t.Helper()
	r := &hclReader{t, text}
	root := &hclBlock{attributes: map[string]any{}}
	r.body(root, "")
	return root
}

var (
	hclBlank  = regexp.MustCompile(`^(?:[ \t\n,]+|#[^\n]*)+`)
	hclName   = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]*`)
	hclText   = regexp.MustCompile(`^"(?:[^"\\\n]|\\.)*"`)
	hclNumber = regexp.MustCompile(`^-?[0-9]+`)
	hclLine   = regexp.MustCompile(`^[^\n]*`)
)

// match takes what the expression finds next, after blanks, comments and commas.
func (r *hclReader) match(e *regexp.Regexp) string {
	r.rest = r.rest[len(hclBlank.FindString(r.rest)):]
	found := e.FindString(r.rest)
	r.rest = r.rest[len(found):]
	return found
}

// next takes a literal text if it comes next.
func (r *hclReader) next(text string) bool {
	r.match(hclBlank)
	after, ok := strings.CutPrefix(r.rest, text)
	r.rest = after
	return ok
}

// unquoted returns what a quoted text says.
func (r *hclReader) unquoted(quoted string) string {
	r.t.Helper()
	text, err := strconv.Unquote(quoted)
	if err != nil {
		r.t.Fatalf("%s: %v", quoted, err)
	}
	return text
}

// body reads attributes and blocks until end, which is empty for the end of the text.
func (r *hclReader) body(b *hclBlock, end string) {
	r.t.Helper()
	for {
		if end != "" && r.next(end) {
			return
		}
		name := r.match(hclName)
		switch {
		case name == "" && end == "" && r.rest == "":
			return
		case name == "":
			r.t.Fatalf("HCL: want a name at %.60q", r.rest)
		case r.next("="):
			b.attributes[name] = r.value()
			continue
		}
		inner := &hclBlock{kind: name, attributes: map[string]any{}}
		for label := r.match(hclText); label != ""; label = r.match(hclText) {
			inner.labels = append(inner.labels, r.unquoted(label))
		}
		if !r.next("{") {
			r.t.Fatalf("HCL: want a block at %.60q", r.rest)
		}
		r.body(inner, "}")
		b.blocks = append(b.blocks, inner)
	}
}

// value reads a value.
func (r *hclReader) value() any {
	r.t.Helper()
	switch {
	case r.next("jsonencode("):
		v := r.value()
		if !r.next(")") {
			r.t.Fatalf("HCL: want ')' at %.60q", r.rest)
		}
		return v
	case r.next("["):
		list := []any{}
		for !r.next("]") {
			list = append(list, r.value())
		}
		return list
	case r.next("{"):
		object := map[string]any{}
		for !r.next("}") {
			key := r.match(hclName)
			if key == "" {
				key = r.unquoted(r.match(hclText))
			}
			if !r.next("=") {
				r.t.Fatalf("HCL: want '=' at %.60q", r.rest)
			}
			object[key] = r.value()
		}
		return object
	}
	if text := r.match(hclText); text != "" {
		return r.unquoted(text)
	}
	if number := r.match(hclNumber); number != "" {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil {
			r.t.Fatal(err)
		}
		return n
	}
	switch text := strings.TrimSpace(r.match(hclLine)); text {
	case "true", "false":
		return text == "true"
	default:
		return expression(text)
	}
}
