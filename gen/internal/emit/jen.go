package emit

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/words"
)

// Only this file deals with jennifer's traps:
//
//   - jen.Dict sorts its keys as text: pairs keep their order here;
//   - jen.Lit(int64) prints a conversion: num prints the digits;
//   - jen.Comment of several lines becomes /* */: doc and note write // lines;
//   - jen.Qual aliases a path whose name it does not know: newFile registers the names;
//   - a separator ends up behind a comment on the same line: pairs take notes above;
//   - imports come in one block: render splits off the standard library's.

// Packages that generated code imports, besides the standard library's.
const (
	runtimePath = "github.com/sluice-go/sluice/runtime"
	storePath   = runtimePath + "/store"
	bucketPath  = runtimePath + "/bucket"
	codecPath   = runtimePath + "/dynamo/codec"

	moneyPath = runtimePath + "/money"

	codectestPath = codecPath + "/codectest"
	gentestPath   = runtimePath + "/gentest"

	typesPath = "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// file is a Go file that is being written.
type file struct {
	*jen.File
}

func newFile(pkg, header string) *file {
	f := &file{jen.NewFile(pkg)}
	f.NoFormat = true // render formats, once
	f.HeaderComment(header)
	f.ImportNames(map[string]string{
		runtimePath: "runtime", storePath: "store", moneyPath: "money", bucketPath: "bucket", codecPath: "codec",
		codectestPath: "codectest", gentestPath: "gentest", typesPath: "types",
	})
	return f
}

// decl adds a declaration after a blank line.
func (f *file) decl(says string, code ...jen.Code) {
	f.Line()
	if says != "" {
		f.Add(doc(says))
	}
	f.Add(code...)
}

// render returns the file as gofmt has it.
func (f *file) render() ([]byte, error) {
	var b bytes.Buffer
	if err := f.Render(&b); err != nil {
		return nil, err
	}
	src, err := format.Source(group(b.Bytes()))
	if err == nil { // gofmt leaves a short function on one line, but does not put it there
		src, err = format.Source(returning.ReplaceAll(src, []byte("$1 { $2 }")))
	}
	if err != nil {
		return nil, fmt.Errorf("format: %w", err)
	}
	return src, nil
}

// returning matches a function that is one return, on three lines.
var returning = regexp.MustCompile(`(?m)^(func .*) \{\n\t(return .*)\n\}$`)

// group moves the standard library's imports, which have no dot in their paths, to the front of the import
// block.
func group(src []byte) []byte {
	const open, end = "\nimport (\n", "\n)\n"
	head, rest, ok := strings.Cut(string(src), open)
	if !ok {
		return src
	}
	block, tail, _ := strings.Cut(rest, end)
	var std, others []string
	for line := range strings.SplitSeq(block, "\n") {
		if strings.Contains(line, ".") {
			others = append(others, line)
		} else {
			std = append(std, line)
		}
	}
	if len(std) > 0 && len(others) > 0 {
		std = append(std, "")
	}
	return []byte(head + open + strings.Join(append(std, others...), "\n") + end + tail)
}

// doc returns text as // lines, folded to the width of the code. Line ends of text stay. Indented lines,
// which are lists and code in Go's comments, are not folded, except items of lists that sluice writes.
func doc(text string) jen.Code { return jen.Comment(comment(text, 117)) }

// field returns text as // lines above a field, folded to its narrower width.
func field(text string) jen.Code { return jen.Comment(comment(text, 113)) }

func comment(text string, width int) string {
	var b strings.Builder
	for whole := range strings.SplitSeq(text, "\n") {
		item := strings.HasPrefix(whole, "  - ")
		parts := []string{whole}
		if item || strings.TrimLeft(whole, " \t") == whole {
			parts = fold(whole, width)
		}
		if item && len(parts) > 1 { // what follows is indented
			parts = append(parts[:1], fold(strings.Join(parts[1:], " "), width-len("    "))...)
		}
		for i, part := range parts {
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			if i > 0 && item {
				part = "    " + part
			}
			b.WriteString(line(part))
		}
	}
	return b.String()
}

// line returns text as one // line. It quotes a leading +build, which gofmt would take for a build
// constraint.
func line(text string) string {
	if rest, ok := strings.CutPrefix(strings.TrimLeft(text, " \t"), "+build"); ok {
		text = `"+build"` + rest
	}
	return strings.TrimRight("// "+text, " ")
}

// fold splits line at blanks. Only a part that is a single word is longer than width.
func fold(line string, width int) []string {
	var parts []string
	for len(line) > width {
		at := strings.LastIndexByte(line[:width+1], ' ')
		if strings.TrimSpace(line[:max(at, 0)]) == "" {
			if at = strings.IndexByte(strings.TrimLeft(line, " "), ' '); at < 0 {
				break
			}
			at += len(line) - len(strings.TrimLeft(line, " "))
		}
		parts = append(parts, line[:at])
		line = strings.TrimLeft(line[at:], " ")
	}
	return append(parts, line)
}

// raw returns text, which has no backquote, as a raw string.
func raw(text string) *jen.Statement { return jen.Op("`" + text + "`") }

// num returns n with its digits in groups of three.
func num(n int64) *jen.Statement { return jen.Op(words.Digits(n, "_")) }

// pair is key: value in a composite literal.
func pair(key string, value jen.Code) *jen.Statement { return jen.Id(key).Op(":").Add(value) }

// noted puts a line of comment above code.
func noted(note string, code jen.Code) *jen.Statement {
	return jen.Comment(line(note)).Line().Add(code)
}

// lines is the braces of a composite literal with one element a line.
func lines(elements ...jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, elements...)
}

// arguments is the parentheses of a call with one argument a line.
func arguments(all ...jen.Code) *jen.Statement {
	return jen.Custom(jen.Options{Open: "(", Close: ")", Separator: ",", Multi: true}, all...)
}

// braces is the braces of a composite literal: on one line if it has no more than few elements.
func braces(elements []jen.Code, few int) *jen.Statement {
	if len(elements) <= few {
		return jen.Values(elements...)
	}
	return lines(elements...)
}

// columns is the most columns of a line of code. A tab counts as one.
const columns, tab = 120, 1

// flow is the arguments of a call, on as many lines as they take. before is the columns in front of them.
func flow(before int, arguments []string) *jen.Statement {
	return jen.Op("(" + flowing(tab+before+len("("), arguments) + ")")
}

// flowing lists texts, on as many lines as they take, from column at on.
func flowing(at int, texts []string) string {
	var b strings.Builder
	for i, t := range texts {
		if i > 0 {
			b.WriteByte(',')
			if at++; at+len(" ")+len(t)+len("),") > columns {
				b.WriteByte('\n')
				at = 3 * tab
			} else {
				b.WriteByte(' ')
				at++
			}
		}
		b.WriteString(t)
		at += len(t)
	}
	return b.String()
}

// few returns the number of elements that may be on one line: most, or 0 if texts, with more columns for
// each, do not fit.
func few(most, before, more int, texts []string) int {
	for _, t := range texts {
		before += len(t) + more
	}
	if before > columns {
		return 0
	}
	return most
}

// slice is a slice literal of short elements.
func slice(of jen.Code, elements []jen.Code) *jen.Statement {
	return jen.Index().Add(of).Add(braces(elements, 6))
}

// define is names := value.
func define(names string, value jen.Code) *jen.Statement { return jen.Id(names).Op(":=").Add(value) }

// each maps items to code.
func each[T any](items []T, code func(int, T) jen.Code) []jen.Code {
	out := make([]jen.Code, len(items))
	for i, item := range items {
		out[i] = code(i, item)
	}
	return out
}

// literals is texts as string literals.
func literals(texts ...string) []jen.Code {
	return each(texts, func(_ int, s string) jen.Code { return jen.Lit(s) })
}
