package reference

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// definition is the JSON Schema of limits.yaml, parsed as YAML, which keeps its order.
type definition struct{ defs *yaml.Node }

// section is a mapping of limits.yaml, or the name that it has in the one above.
type section struct {
	path  []string   // resources, <resource>: names that users choose are in angle brackets
	def   *yaml.Node // of the mapping
	names *yaml.Node // the schema of its name; nil if the name is fixed
	keys  []key
}

// key is a key of a mapping.
type key struct {
	path     []string
	def      *yaml.Node // of its value
	required bool
}

// name returns k's name.
func (k key) name() string { return k.path[len(k.path)-1] }

// sections returns all mappings, each after the one that it is in, in the definition's order.
func sections(jsonSchema []byte) ([]section, error) {
	var doc yaml.Node
	if err := yaml.Unmarshal(jsonSchema, &doc); err != nil {
		return nil, err
	}
	root := doc.Content[0]
	d := definition{get(root, "$defs")}
	return d.below(nil, nil, d.resolve(root))
}

// below returns the section of def, which is a mapping, and those in it.
func (d definition) below(path []string, names, def *yaml.Node) (all []section, err error) {
	at := section{path: path, def: def, names: names}
	required := map[string]bool{}
	for _, n := range items(get(def, "required")) {
		required[n.Value] = true
	}
	var inside []section
	for name, own := range pairs(get(def, "properties")) {
		k := key{path: sub(path, name), def: d.resolve(own), required: required[name]}
		at.keys = append(at.keys, k)
		more, err := d.inside(k.path, k.def)
		if err != nil {
			return nil, err
		}
		inside = append(inside, more...)
	}
	more, err := d.named(path, def)
	return append([]section{at}, append(inside, more...)...), err
}

// inside returns the sections in the value of a key.
func (d definition) inside(path []string, def *yaml.Node) ([]section, error) {
	switch list := get(def, "items"); {
	case get(def, "properties") != nil:
		return d.below(path, nil, def)
	case list != nil && get(list, "properties") != nil:
		return d.below(sub(path[:len(path)-1], path[len(path)-1]+"[]"), nil, list)
	}
	return d.named(path, def)
}

// named returns the sections in a mapping whose keys are names that users choose.
func (d definition) named(path []string, def *yaml.Node) ([]section, error) {
	value := d.resolve(get(def, "additionalProperties"))
	if value == nil {
		return nil, nil
	}
	words := strings.Fields(text(value, "title"))
	if len(words) == 0 {
		return nil, fmt.Errorf("what is in %s has no title to name it by", dotted(path))
	}
	return d.below(sub(path, "<"+strings.ToLower(words[len(words)-1])+">"), d.resolve(get(def, "propertyNames")),
		value)
}

// resolve returns a node merged with those that it refers to, as one mapping; nil if it is no mapping.
func (d definition) resolve(n *yaml.Node) *yaml.Node {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil
	}
	all := &yaml.Node{Kind: yaml.MappingNode}
	for n != nil {
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, value := n.Content[i], n.Content[i+1]
			if name.Value == "items" {
				value = d.resolve(value)
			}
			if name.Value != "$ref" && get(all, name.Value) == nil {
				all.Content = append(all.Content, name, value)
			}
		}
		n = get(d.defs, strings.TrimPrefix(text(n, "$ref"), "#/$defs/"))
	}
	return all
}

// get returns the value of a key, nil if there is none.
func get(n *yaml.Node, name string) *yaml.Node {
	for key, value := range pairs(n) {
		if key == name {
			return value
		}
	}
	return nil
}

// text returns the text of a key, "" if there is none.
func text(n *yaml.Node, name string) string {
	if v := get(n, name); v != nil {
		return v.Value
	}
	return ""
}

// pairs goes through the keys of a mapping.
func pairs(n *yaml.Node) func(func(string, *yaml.Node) bool) {
	return func(yield func(string, *yaml.Node) bool) {
		for i := 0; n != nil && n.Kind == yaml.MappingNode && i+1 < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, n.Content[i+1]) {
				return
			}
		}
	}
}

// items returns those of a list.
func items(n *yaml.Node) []*yaml.Node {
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	return n.Content
}

// sub returns the path of what is in path.
func sub(path []string, name string) []string { return append(slices.Clip(path), name) }

// dotted returns a path as one text.
func dotted(path []string) string { return strings.Join(path, ".") }
