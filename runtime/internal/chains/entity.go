package chains

import (
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/sluice-go/sluice/runtime/store"
)

// Nearest returns the links of entity's chain, and the stored id of the first. It fails with a
// *store.InvalidError for a bad entity. The error names resource, unless that is empty.
func Nearest(kinds []store.Kind, resource string, entity store.Entity) ([]store.Link, string, error) {
	all, err := linksOf(resource, entity, nil)
	if err != nil {
		return nil, "", err
	}
	link := all[0]
	if link.Kind >= len(kinds) {
		return nil, "", &store.InvalidError{
			Resource: resource, Field: "entity", Value: link.ID,
			Reason: "is of another limits.yaml: use this Limiter's package",
		}
	}
	kind := &kinds[link.Kind]
	if reason := store.CheckID(kind.Prefix, link.ID); reason != "" {
		return nil, "", errID(resource, kind, link.ID, reason)
	}
	return all, kind.Prefix + link.ID, nil
}

// linksOf appends the links of entity's chain to dst.
func linksOf(resource string, entity store.Entity, dst []store.Link) ([]store.Link, error) {
	if entity == nil {
		return nil, &store.InvalidError{Resource: resource, Field: "entity", Reason: "is nil"}
	}
	return entity.Chain(dst), nil
}

// errID returns the error for an id of kind that is bad for a reason.
func errID(resource string, kind *store.Kind, id, reason string) error {
	return &store.InvalidError{Resource: resource, Field: "id of " + kind.Name, Value: id, Reason: reason}
}

// Swaps looks for ids that are swapped. Its zero value is ready. It is safe for concurrent use.
type Swaps struct{ logged atomic.Bool }

// Warn logs, the first time, that an id of links begins with the prefix of another kind: User{ID:
// "project-1"} is mostly a mistake, but may be an id.
func (s *Swaps) Warn(log *slog.Logger, kinds []store.Kind, links []store.Link) {
	if s.logged.Load() {
		return
	}
	for _, link := range links {
		for kind := range kinds {
			other := &kinds[kind]
			if kind == link.Kind || other.Prefix == "" || !strings.HasPrefix(link.ID, other.Prefix) {
				continue
			}
			if !s.logged.Swap(true) {
				log.Warn("sluice: an id begins with the prefix of another kind: see that ids are not swapped",
					slog.String("kind", kinds[link.Kind].Name), slog.String("id", store.Quote(link.ID)),
					slog.String("other", other.Name))
			}
			return
		}
	}
}
