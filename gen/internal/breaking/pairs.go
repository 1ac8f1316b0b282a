package breaking

import (
	"iter"
	"slices"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// resources yields each resource that both schemas have: the old one, and the new one.
func (c *comparison) resources() iter.Seq2[*schema.Resource, *schema.Resource] {
	return func(yield func(o, n *schema.Resource) bool) {
		for _, o := range c.old.Resources {
			if n := resource(c.new, o.Name); n != nil && !yield(o, n) {
				return
			}
		}
	}
}

// kinds yields each kind that both schemas have: the old one, and the new one.
func (c *comparison) kinds() iter.Seq2[*schema.Kind, *schema.Kind] {
	return func(yield func(o, n *schema.Kind) bool) {
		for _, o := range c.old.Kinds {
			if n := kind(c.new, o.Name); n != nil && !yield(o, n) {
				return
			}
		}
	}
}

// limits yields each limit that two resources have: its index in each.
func limits(o, n *schema.Resource) iter.Seq2[int, int] {
	return func(yield func(i, j int) bool) {
		for i, l := range o.Limits {
			if j := limit(n, l.Name); j >= 0 && !yield(i, j) {
				return
			}
		}
	}
}

// resource returns the resource of a name, nil if there is none.
func resource(s *schema.Schema, name string) *schema.Resource {
	i := slices.IndexFunc(s.Resources, func(r *schema.Resource) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return s.Resources[i]
}

// kind returns the kind of a name, nil if there is none.
func kind(s *schema.Schema, name string) *schema.Kind {
	i := slices.IndexFunc(s.Kinds, func(k *schema.Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return s.Kinds[i]
}

// limit returns the index of the limit of a name, -1 if there is none.
func limit(r *schema.Resource, name string) int {
	return slices.IndexFunc(r.Limits, func(l *schema.Limit) bool { return l.Name == name })
}

// charged returns the entry of a kind in r, nil if the kind has no bucket of r.
func charged(s *schema.Schema, r *schema.Resource, name string) *schema.Charged {
	i := slices.IndexFunc(r.Charged, func(c schema.Charged) bool { return s.Kinds[c.Kind].Name == name })
	if i < 0 {
		return nil
	}
	return &r.Charged[i]
}

// parent returns the name of k's parent, "" for none.
func parent(s *schema.Schema, k *schema.Kind) string {
	if k.Parent < 0 {
		return ""
	}
	return s.Kinds[k.Parent].Name
}

// along returns the names of the ancestors of a kind that have a bucket of r, nearest first.
func along(s *schema.Schema, r *schema.Resource, k *schema.Kind) []string {
	var names []string
	for k.Parent >= 0 {
		k = s.Kinds[k.Parent]
		if charged(s, r, k.Name) != nil {
			names = append(names, k.Name)
		}
	}
	return names
}

// cascades reports whether some call on r would charge an ancestor if its cascade is not none.
func cascades(s *schema.Schema, r *schema.Resource) bool {
	return slices.ContainsFunc(r.Charged, func(c schema.Charged) bool {
		return len(along(s, r,
			s.Kinds[c.Kind])) > 0
	})
}
