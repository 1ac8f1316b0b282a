package schema

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"gopkg.in/yaml.v3"
)

// Read parses and checks a limits.yaml; file is how positions name it. It finds every mistake that does not hide
// behind another one, and returns them sorted. The Schema is never nil, but of use only if there are no Problems.
func Read(file string, src []byte) (*Schema, Problems) {
	r := &reader{file: file}
	s := &Schema{Stores: []string{storeDynamoDB}}
	if root := r.parse(src); root != nil {
		r.schema(root, s)
	}
	r.problems.Sort()
	return s, r.problems
}

const storeDynamoDB = "dynamodb"

// reader collects the problems of one file. Its methods read nodes; what they report is not reported again further up.
type reader struct {
	file     string
	problems Problems
}

func (r *reader) add(pos Pos, rule, format string, args ...any) {
	r.problems.Add(pos, rule, format, args...)
}

func (r *reader) at(line, col int) Pos { return Pos{File: r.file, Line: line, Col: col} }

// parse returns the top node of the only document of src, nil if there is none to go on with.
func (r *reader) parse(src []byte) *yaml.Node {
	if !r.checkText(src) {
		return nil
	}
	dec := yaml.NewDecoder(bytes.NewReader(src))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		r.add(r.at(1, 1), ruleOneDocument, "the file is empty: it must hold version, revision, go, entities and resources")
		return nil
	case err != nil:
		r.syntax(src, err)
		return nil
	}
	var second yaml.Node
	switch err := dec.Decode(&second); {
	case err == nil:
		r.add(r.at(second.Line, second.Column), ruleOneDocument, "a second document starts here: a file holds one, remove the --- line or split the file")
	case !errors.Is(err, io.EOF):
		r.syntax(src, err)
	}
	root := doc.Content[0]
	if isNull(root) {
		r.add(r.pos(root), ruleOneDocument, "the document is empty: it must hold version, revision, go, entities and resources")
		return nil
	}
	r.checkFeatures(root)
	return root
}

// checkText reports the first byte of src that no YAML file can hold: yaml.v3 does not say where it is.
func (r *reader) checkText(src []byte) bool {
	line, col := 1, 1
	for rest := src; len(rest) > 0; {
		c, size := utf8.DecodeRune(rest)
		switch {
		case c == utf8.RuneError && size == 1:
			r.add(r.at(line, col), ruleNotText, "byte 0x%02x is not UTF-8: save the file as UTF-8", rest[0])
			return false
		case c < ' ' && c != '\t' && c != '\n' && c != '\r', c >= 0x7f && c < 0xa0 && c != 0x85, c == 0xfffe, c == 0xffff:
			r.add(r.at(line, col), ruleNotText, "control character %U cannot stand in YAML: remove it", c)
			return false
		case c == '\n':
			line, col = line+1, 0
		}
		rest, col = rest[size:], col+1
	}
	return true
}

// syntax reports an error of yaml.v3, which has the line in its text, if anywhere.
func (r *reader) syntax(src []byte, err error) {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	if m := regexp.MustCompile(`^unknown anchor '(.*)' referenced$`).FindStringSubmatch(text); m != nil {
		line, col := 1, 1
		if before, _, found := bytes.Cut(src, []byte("*"+m[1])); found {
			line += bytes.Count(before, []byte("\n"))
			col += utf8.RuneCount(before[bytes.LastIndexByte(before, '\n')+1:])
		}
		r.add(r.at(line, col), ruleYAMLFeature, "alias *%s: anchors and aliases are not supported, write the value where it applies", m[1])
		return
	}
	line := 1
	if m := regexp.MustCompile(`^line ([0-9]+): `).FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1]); err == nil {
			line, text = n, strings.TrimPrefix(text, m[0])
		}
		if fromParser(text) {
			line = min(line+1, 1+bytes.Count(bytes.TrimSpace(src), []byte("\n")))
		}
	}
	r.add(r.at(line, 1), ruleYAMLSyntax, "not YAML: %s", strings.ReplaceAll(text, "\n", " "))
}

// fromParser says that an error is of yaml.v3's parser, whose lines count from 0; those of its scanner count from 1.
func fromParser(text string) bool {
	switch strings.TrimPrefix(text, "did not find expected ") {
	case "node content", "key", "'-' indicator", "',' or ']'", "',' or '}'", "<document start>":
		return true
	}
	return false
}

// checkFeatures reports what makes a value stand elsewhere than where it applies, in n and below.
func (r *reader) checkFeatures(n *yaml.Node) {
	switch {
	case n.Kind == yaml.AliasNode:
		r.add(r.pos(n), ruleYAMLFeature, "alias *%s: anchors and aliases are not supported, write the value where it applies", n.Value)
	case n.Anchor != "":
		r.add(r.pos(n), ruleYAMLFeature, "anchor &%s: anchors and aliases are not supported, write the value where it applies", n.Anchor)
	case n.Tag == tagMerge:
		r.add(r.pos(n), ruleYAMLFeature, "merge key <<: merging is not supported, write the values where they apply")
	case n.Style&yaml.TaggedStyle != 0:
		r.add(r.pos(n), ruleYAMLFeature, "tag %s: tags are not supported, remove it (and quote the value if it is meant as text)", strconv.Quote(n.Tag))
	}
	for _, c := range n.Content {
		r.checkFeatures(c)
	}
}

func topKeys() []string {
	return []string{"version", "revision", "go", "stores", "entities", "resources"}
}

func goKeys() []string { return []string{"package", "out"} }

// schema reads the whole document into s.
func (r *reader) schema(root *yaml.Node, s *Schema) {
	f, ok := r.fields(root, "limits.yaml", topKeys(), nil)
	if !ok {
		return
	}
	if e, ok := r.need(f, "version", "write version: 1"); ok {
		s.Version = r.version(e)
	}
	if e, ok := r.need(f, "revision", "write revision: 1, and raise it whenever a number changes"); ok {
		s.RevisionPos = r.pos(e.value)
		s.Revision = r.count(e, "revision", maxRevision).n
	}
	if e, ok := r.need(f, "go", "write go: {package: limits}"); ok {
		r.goPackage(e, s)
	}
	if e, ok := f.get("stores"); ok {
		s.Stores = r.stores(e)
	}
	kindsKnown := false
	if e, ok := r.need(f, "entities", "write the kinds of entity, such as entities: {user: {}}"); ok {
		s.Kinds, kindsKnown = r.kinds(e)
	}
	if e, ok := r.need(f, "resources", "write what is limited, such as resources: {api: {limits: {rps: {capacity: 10, every: 1s}}}}"); ok {
		s.Resources = r.resources(e, s.Kinds, kindsKnown)
	}
	r.checkGoNames(s)
}

// version reads the file format's version: 1 is all there is.
func (r *reader) version(e entry) int {
	switch text, ok := r.scalar(e.value, "version"); {
	case !ok:
	case text == "1":
		return 1
	default:
		r.add(r.pos(e.value), ruleVersion, "version %q is not one that this sluice reads: write version: 1, or run a newer sluice", text)
	}
	return 0
}

// goPackage reads where generated code goes.
func (r *reader) goPackage(e entry, s *Schema) {
	f, ok := r.fields(e.value, "go", goKeys(), nil)
	if !ok {
		return
	}
	if e, ok := r.needAt(f, r.pos(e.key), "package", "write the name of the package to generate, such as go: {package: limits}"); ok {
		if text, ok := r.text(e.value, "package"); ok {
			s.Package = text
			if why := badPackage(text); why != "" {
				r.add(r.pos(e.value), rulePackageName, "package %q %s", text, why)
			}
		}
	}
	s.Out = "./" + s.Package
	if e, ok := f.get("out"); ok {
		if text, ok := r.text(e.value, "out"); ok {
			s.Out = text
			if why := badPath(text); why != "" {
				r.add(r.pos(e.value), ruleOutPath, "out %q %s: write a folder relative to this file's, such as ./limits", text, why)
			}
		}
	}
}

// badPath says why out cannot be a relative folder on every system, "" if it can.
func badPath(out string) string {
	switch {
	case strings.TrimSpace(out) == "":
		return "is empty"
	case strings.HasPrefix(out, "/"):
		return "is absolute"
	case strings.Contains(out, `\`):
		return "has a backslash"
	case strings.ContainsAny(out, `:*?"<>|`):
		return "has a character that not every system has in paths"
	case strings.TrimSpace(out) != out, strings.ContainsFunc(out, isControl):
		return "has blanks around it or control characters"
	}
	return ""
}

// stores reads which stores to emit code for.
func (r *reader) stores(e entry) []string {
	var stores []string
	for _, it := range r.names(e.value, "stores") {
		switch it.name {
		case storeDynamoDB:
			stores = append(stores, it.name)
		case "redis":
			r.add(r.pos(it.value), ruleNotYet, "store redis is not supported by this version of sluice yet: leave it out")
		default:
			r.add(r.pos(it.value), ruleUnknownValue, "there is no store %q: %s", it.name, cure(it.name, []string{storeDynamoDB}))
		}
	}
	if n := e.value; n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.add(r.pos(n), ruleEmpty, "stores is empty: name one, or leave it out (it is [dynamodb] then)")
	}
	return stores
}
