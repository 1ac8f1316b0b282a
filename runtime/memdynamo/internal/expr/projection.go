package expr

import "github.com/sluice-go/sluice/runtime/memdynamo/internal/value"

// Projection is a choice of paths.
type Projection struct {
	paths []path
	tree  tree
}

// Projection reads a projection expression.
func (s *Scope) Projection(text string) (*Projection, error) {
	paths, err := parseProjection(text)
	if err != nil {
		return nil, err
	}
	c := checker{scope: s, parameter: ProjectionExpression}
	for _, p := range paths {
		if err := c.pathWords(p); err != nil {
			return nil, err
		}
	}
	p := &Projection{paths: paths}
	if err := p.tree.grow(&c, len(paths), func(i int) path { return paths[i] }); err != nil {
		return nil, err
	}
	return p, nil
}

// Of returns the projected part of item.
func (p *Projection) Of(item value.Map) value.Map { return p.tree.ofItem(item) }

// Attributes returns the top-level attributes of the paths, sorted.
func (p *Projection) Attributes() []string { return roots(p.paths, false) }

// Nested returns those of its top-level attributes that it goes into, sorted: none may be of a key.
func (p *Projection) Nested() []string { return roots(p.paths, true) }

// parseProjection reads a whole projection.
func parseProjection(text string) ([]path, error) {
	p, err := newParser(ProjectionExpression, text)
	if err != nil {
		return nil, err
	}
	paths := make([]path, 0, 4)
	for {
		path, err := p.path()
		if err != nil {
			return nil, err
		}
		paths = append(paths, path)
		if p.tok.kind != tComma {
			return paths, p.end()
		}
		p.next()
	}
}
