package reference

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// valueOf describes the values of def.
func valueOf(def *yaml.Node) string {
	switch {
	case get(def, "enum") != nil:
		return oneOf(items(get(def, "enum")))
	case get(def, "oneOf") != nil:
		return valueOf(get(def, "oneOf").Content[0]) // the others are the same, written otherwise
	}
	switch text(def, "type") {
	case "boolean":
		return "`true` or `false`"
	case "integer":
		return "a whole number" + bounds(def, "minimum", "maximum", " from ", " to ")
	case "array":
		return "a list" + bounds(def, "minItems", "maxItems", " of at least ", " and at most ") +
			each(text(def, "uniqueItems")) + ": " + valueOf(get(def, "items"))
	case "object":
		return "a mapping"
	}
	return "text" + pattern(def)
}

// each is the remark that a list has no item twice.
func each(unique string) string {
	if unique == "true" {
		return ", each item once"
	}
	return ""
}

// oneOf lists values, of which 1 and "1" are the same.
func oneOf(values []*yaml.Node) string {
	var all []string
	seen := map[string]bool{}
	for _, v := range values {
		if !seen[v.Value] {
			all = append(all, "`"+v.Value+"`")
		}
		seen[v.Value] = true
	}
	if last := len(all) - 1; last > 0 {
		return strings.Join(all[:last], ", ") + " or " + all[last]
	}
	return strings.Join(all, "")
}

// bounds describes the bounds that def has for a number.
func bounds(def *yaml.Node, least, most, from, to string) string {
	words := ""
	if n := text(def, least); n != "" {
		words = from + grouped(n)
	}
	if n := text(def, most); n != "" {
		words += to + grouped(n)
	}
	return words
}

// grouped writes digits as limits.yaml may have them.
func grouped(n string) string {
	for i := len(n) - 3; i > 0; i -= 3 {
		n = n[:i] + "_" + n[i:]
	}
	return n
}

// pattern describes the pattern of a text, unless it is too long to read: the errors have it in words.
func pattern(def *yaml.Node) string {
	const longest = 40
	p := text(def, "pattern")
	if p == "" || len(p) > longest {
		return ""
	}
	return fmt.Sprintf(", `%s`", p)
}

// inline returns n as YAML on one line.
func inline(n *yaml.Node) string {
	if n == nil {
		return ""
	}
	flow(n)
	out, err := yaml.Marshal(n)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}

// flow sets n and all nodes in it to be written on one line. A time of the day keeps its quotes: without
// them, it is a number to some readers of YAML.
func flow(n *yaml.Node) {
	if !strings.Contains(n.Value, ":") {
		n.Style = 0
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, c := range n.Content {
		flow(c)
	}
}

// code returns any text as code in Markdown.
func code(text string) string {
	if strings.Contains(text, "`") {
		return "`` " + text + " ``"
	}
	return "`" + text + "`"
}
