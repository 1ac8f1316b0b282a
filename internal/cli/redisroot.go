package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// stored returns the buckets of l's entity that are meant, as rootHelp says.
func (s *redisStore) stored(ctx context.Context, l level, root string) (all []redisstore.StoredBucket, err error) {
	certain := true
	switch {
	case root != "" && root != l.at && !s.rooted:
		err = usageError{"--root is about keys on a cluster, which this Redis is not: leave it out"}
	case root != "":
		err = s.schema.ends(l, root)
	case !s.rooted || len(l.charges()) == 0:
		root = l.at
	default:
		certain = false
		root, err = s.rootOf(ctx, l)
	}
	if err != nil {
		return nil, err
	}
	if root != "" {
		b, err := s.buckets.Inspect(ctx, l.spec.Resource, root, l.at, l.spec.Limits...)
		switch {
		case err != nil:
			return nil, err
		case b != nil:
			return []redisstore.StoredBucket{*b}, nil
		case certain:
			return nil, nil
		}
	}
	for page, err := range s.buckets.Buckets(ctx, l.spec.Resource, l.at) {
		if err := errors.Join(append(page.Malformed, err)...); err != nil {
			return nil, err
		}
		all = append(all, page.Buckets...)
	}
	return all, nil
}

// rootOf returns where the stored parents of l's entity lead: nothing where they do not lead all the way.
func (s *redisStore) rootOf(ctx context.Context, l level) (string, error) {
	root, at := l.at, l.at
	for kind := l.kind; chargedAbove(l.spec, kind); kind = s.schema.kindOf(at) {
		m, found, err := s.members().Get(ctx, at)
		switch {
		case err != nil:
			return "", err
		case found && !m.Cascade:
			return root, nil
		case !found || !s.schema.leads(m): // look-ups fail, so that calls bring their chain along
			return "", nil
		}
		at = m.Parent
		if l.spec.Kinds[s.schema.kindOf(at)].Limits != nil {
			root = at
		}
	}
	return root, nil
}

// leads reports that m has a parent that can be one.
func (s *schema) leads(m runtime.Member) bool { return m.Parent != "" && m.Check(s.kinds) == nil }

// chargedAbove reports whether calls on an entity of kind charge a kind above it.
func chargedAbove(spec *runtime.Spec, kind int) bool {
	return slices.ContainsFunc(ancestors(spec.Kinds, kind), func(k int) bool { return spec.Kinds[k].Limits != nil })
}

// ends refuses a root that no chain of l's entity ends with.
func (s *schema) ends(l level, root string) error {
	kind, err := s.entity(root)
	if err != nil {
		return err
	}
	if root != l.at && !slices.Contains(l.charges(), s.kinds[kind].Name) {
		may := append([]string{l.at}, l.charges()...)
		return usageError{fmt.Sprintf("--root %s: a chain of %s on %s ends with one of: %s", root, l.at, l.spec.Resource, strings.Join(may, ", "))}
	}
	return nil
}
