package reference

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// place is the position of a key in a limits.yaml, which need not exist.
type place struct {
	in      *yaml.Node // the mapping
	trail   []int      // path to the mapping: an index into Content for each step from the top
	name    string
	index   int  // of the key in in.Content; -1 if it does not exist
	removed bool // the key was removed
}

// find returns the place of path below root, nil if there is no mapping for it. A name in angle brackets
// stands for the entry that has most of the rest of path, the last of several. A list stands for its first
// item.
func find(root *yaml.Node, path []string) *place {
	at := &place{in: root, index: -1}
	for i, step := range path {
		step, list := strings.CutSuffix(step, "[]")
		at.name, at.index = step, keyIndex(at.in, step)
		if strings.HasPrefix(step, "<") && len(at.in.Content) > 0 {
			at.index = deepest(at.in, path[i+1:])
			at.name = at.in.Content[at.index].Value
		}
		if i == len(path)-1 && !list {
			return at
		}
		if at.index < 0 {
			return nil
		}
		at.in, at.trail = at.in.Content[at.index+1], append(at.trail, at.index+1)
		if list {
			if at.in.Kind != yaml.SequenceNode || len(at.in.Content) == 0 {
				return nil
			}
			at.in, at.trail = at.in.Content[0], append(at.trail, 0)
		}
		if at.in.Kind != yaml.MappingNode {
			return nil
		}
	}
	return at
}

// deepest returns the index of the last of the entries of a mapping that have most of path.
func deepest(mapping *yaml.Node, path []string) int {
	best, most := -1, -1
	for e := 0; e+1 < len(mapping.Content); e += 2 {
		if n := depth(mapping.Content[e+1], path); n >= most {
			best, most = e, n
		}
	}
	return best
}

// depth returns how many steps of path there are below n.
func depth(n *yaml.Node, path []string) int {
	if len(path) == 0 || n.Kind != yaml.MappingNode {
		return 0
	}
	i := keyIndex(n, path[0])
	if strings.HasPrefix(path[0], "<") {
		i = deepest(n, path[1:])
	}
	if i < 0 {
		return 0
	}
	return 1 + depth(n.Content[i+1], path[1:])
}

// keyIndex returns the index of a key in a mapping's Content, -1 if it is not there.
func keyIndex(mapping *yaml.Node, name string) int {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return i
		}
	}
	return -1
}

// write gives the key that value, which is YAML.
func (p *place) write(value string) bool {
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(value), &doc); err != nil {
		return false
	}
	node := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	if len(doc.Content) > 0 {
		node = doc.Content[0]
	}
	p.in.Style = 0
	if p.index < 0 {
		p.in.Content = append(p.in.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: p.name}, node)
		p.index = len(p.in.Content) - 2
		return true
	}
	p.in.Content[p.index+1] = node
	return true
}

// remove leaves the key out.
func (p *place) remove() bool {
	if p.index < 0 {
		return false
	}
	p.in.Content = slices.Delete(p.in.Content, p.index, p.index+2)
	p.removed = true
	return true
}

// repeat writes each item of the list twice.
func (p *place) repeat() bool {
	if p.index < 0 || p.in.Content[p.index+1].Kind != yaml.SequenceNode {
		return false
	}
	list := p.in.Content[p.index+1]
	for _, item := range list.Content {
		list.Content = append(list.Content, clone(item))
	}
	return true
}

// rename gives the entry another name.
func (p *place) rename(name string) bool {
	if p.index < 0 || p.name == name {
		return false
	}
	p.in.Content[p.index] = &yaml.Node{Kind: yaml.ScalarNode, Value: name}
	return true
}

// concerns reports whether a problem is about the key or its value, in the file of root.
func (p *place) concerns(root *yaml.Node, problem schema.Problem) bool {
	if p.removed {
		return strings.HasPrefix(problem.Message, p.name+" is missing")
	}
	in := root
	for _, i := range p.trail {
		if i >= len(in.Content) {
			return false
		}
		in = in.Content[i]
	}
	if p.index+1 >= len(in.Content) {
		return false
	}
	key := in.Content[p.index]
	return key.Line == problem.Line && key.Column == problem.Col || holds(in.Content[p.index+1], problem.Pos)
}

// holds reports whether n, or an item of the list n, is at pos. It does not look into mappings: they have
// keys.
func holds(n *yaml.Node, pos schema.Pos) bool {
	return n.Line == pos.Line && n.Column == pos.Col || slices.ContainsFunc(items(n),
		func(c *yaml.Node) bool { return holds(c, pos) })
}
