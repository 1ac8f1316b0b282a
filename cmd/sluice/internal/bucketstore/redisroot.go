package bucketstore

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"

	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// stored returns the buckets of the scope's entity, found as RootHelp says. A given root selects one bucket.
func (s *Redis) stored(
	ctx context.Context, l schemafile.Scope, root string,
) (all []redisstore.StoredBucket, err error) {
	certain := root != "" || !s.rooted || len(l.Charges()) == 0
	if root, err = s.root(ctx, l, root); err != nil {
		return nil, err
	}
	if root != "" {
		b, err := s.Buckets.Inspect(ctx, l.Spec.ResourceOf(l.Kind), root, l.At, l.Spec.Limits...)
		switch {
		case err != nil:
			return nil, err
		case b != nil:
			return []redisstore.StoredBucket{*b}, nil
		case certain:
			return nil, nil
		}
	}
	for page, err := range s.Buckets.Buckets(ctx, l.Spec.ResourceOf(l.Kind), l.At) {
		if err := errors.Join(append(page.Malformed, err)...); err != nil {
			return nil, err
		}
		all = append(all, page.Buckets...)
	}
	return all, nil
}

// Root implements Store. It returns a usage error if stored parents do not lead to the root.
func (s *Redis) Root(ctx context.Context, l schemafile.Scope, given string) (string, error) {
	root, err := s.root(ctx, l, given)
	if err == nil && root == "" {
		err = program.Usagef("the parent of %s is not stored, and so its root is not known: pass --root",
			term.Quote(l.At))
	}
	return root, err
}

// root returns the root of the scope's entity, as RootHelp says: empty if stored parents do not lead to it.
func (s *Redis) root(ctx context.Context, l schemafile.Scope, given string) (string, error) {
	switch {
	case given != "" && given != l.At && !s.rooted:
		return "", program.Usagef("--root is for keys on a cluster, and this Redis is none: leave it out")
	case given != "":
		return given, ends(s.schema, l, given)
	case !s.rooted || len(l.Charges()) == 0:
		return l.At, nil
	}
	return rootOf(ctx, s, l)
}

// rootOf follows the stored parents of the entity of l to the root. It returns an empty string if a parent is
// missing.
func rootOf(ctx context.Context, s *Redis, l schemafile.Scope) (string, error) {
	root, at := l.At, l.At
	for kind := l.Kind; chargedAbove(l.Spec, kind); kind = s.schema.KindOf(at) {
		m, found, err := s.Members().Get(ctx, at)
		switch {
		case err != nil:
			return "", err
		case found && !m.Cascade:
			return root, nil
		case !found || !leads(s.schema, m): // a look-up would fail, so calls name their chain
			return "", nil
		}
		at = m.Parent
		if l.Spec.HasBucket(s.schema.KindOf(at)) {
			root = at
		}
	}
	return root, nil
}

// leads reports whether m has a parent of the right kind.
func leads(s *schemafile.Schema, m store.Member) bool {
	return m.Parent != "" && m.Check(s.Kinds) == nil
}

// chargedAbove reports whether calls on an entity of kind charge a kind above it.
func chargedAbove(spec *store.Spec, kind int) bool {
	return slices.ContainsFunc(schemafile.Ancestors(spec.Kinds, kind),
		func(k int) bool { return spec.HasBucket(k) })
}

// ends returns a usage error if no call on the scope's entity can have this root.
func ends(s *schemafile.Schema, l schemafile.Scope, root string) error {
	kind, err := s.Entity(root)
	if err != nil {
		return err
	}
	if root != l.At && !slices.Contains(l.Charges(), s.Kinds[kind].Name) {
		may := append([]string{term.Quote(l.At)}, l.Charges()...)
		return program.Usagef("--root %s cannot be the last entity that a call of %s on %s charges: pass one of %s",
			term.Quote(root), term.Quote(l.At), l.Spec.ResourceOf(l.Kind), strings.Join(may, ", "))
	}
	return nil
}
