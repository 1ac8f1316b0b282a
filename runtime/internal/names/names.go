// Package names reads the catalog of a template, and remembers it (docs/design.md, "Templates").
//
// A process reads the whole catalog once in half of the CacheTTL, beside its calls. A name that is not in it
// may have been added since, so its entry is read alone. There are at most 50 such reads a second.
package names

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime/internal/background"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Names has one V for each name of a template. It is safe for concurrent use.
type Names[V any] struct {
	Config[V]

	all        *lookups.Cache[*catalog[V]] // under the key ""
	current    atomic.Pointer[catalog[V]]  // as last read; nil before the first read
	refreshing atomic.Bool
	changes    atomic.Int64       // writes of this process to the catalog
	one        *lookups.Cache[*V] // names that are not in current; nil for a name without an entry
	pace       pace               // of the reads of one
}

// Config says what Names need. All fields are set.
type Config[V any] struct {
	Env      *store.Env
	Template store.Definition
	Catalog  func() store.Catalog
	Make     func(*store.Named) *V // makes the V of an entry, each time that the entry has changed
	Tasks    *background.Tasks     // counts the reads that run in the background
}

// catalog is a catalog as it was read.
type catalog[V any] struct {
	read  int64 // when the read began, ms
	names map[string]*named[V]
}

// named is what was made for a name, and the version of its entry.
type named[V any] struct {
	version int64
	value   *V
}

// Bounds of the look-ups of single names.
const (
	mostUnknown = 10_000 // names that are remembered
	turns       = 8      // reads at a time
)

// New returns the names of a template.
func New[V any](c Config[V]) (*Names[V], error) {
	n := &Names[V]{Config: c}
	template := store.Quote(c.Template.Spec().Resource)
	var err error
	o := lookups.Options{Size: 1, Turns: 1, Tasks: c.Tasks, Subject: func(string) string {
		return "the catalog of " + template
	}}
	if n.all, err = lookups.NewCache(c.Env, o, func(ctx context.Context, _ string) (*catalog[V], error) {
		return n.readAll(ctx)
	}); err != nil {
		return nil, err
	}
	o = lookups.Options{Size: mostUnknown, Turns: turns, Tasks: c.Tasks, Subject: func(name string) string {
		return fmt.Sprintf("the name %s of %s", store.Quote(name), template)
	}}
	n.one, err = lookups.NewCache(c.Env, o, n.readOne)
	return n, err
}

// Get returns what was made for a name, or for the name that it is an alias of. While it is remembered, Get
// does no I/O and does not allocate. It fails with
//   - an *store.InvalidError for a text that cannot be a name;
//   - an *store.UnknownNameError for a name that the catalog does not have;
//   - the store's error, if nothing was read so far.
func (n *Names[V]) Get(ctx context.Context, name string) (*V, error) {
	all, ttl, now := n.current.Load(), n.Env.CacheTTL, n.Env.Clock.Now().UnixMilli()
	switch {
	case all == nil, !lookups.TTL(ttl).Fresh(all.read, now):
		next, err := n.all.Get(ctx, "")
		if _, down := errors.AsType[*store.UnavailableError](err); err != nil && (!down || all == nil) {
			return nil, err
		} else if err == nil {
			all = next
		}
	case !lookups.TTL(ttl/2).Fresh(all.read, now) && n.refreshing.CompareAndSwap(false, true):
		ctx := context.WithoutCancel(ctx)
		n.Tasks.Start(func() {
			defer n.refreshing.Store(false)
			_, _ = n.all.Refresh(ctx, "") // if it fails, current stays in use until the CacheTTL ends
		})
	}
	if one := all.names[name]; one != nil {
		return one.value, nil
	}
	resource := n.Template.Spec().Resource
	if reason := store.CheckName(name); reason != "" {
		return nil, &store.InvalidError{Resource: resource, Field: "name", Value: name, Reason: reason}
	}
	value, err := n.one.Get(ctx, name)
	if value == nil && err == nil {
		err = &store.UnknownNameError{Resource: resource, Name: name}
	}
	return value, err
}

// Invalidate makes the next Get read. The process has changed the entry of name.
func (n *Names[V]) Invalidate(name string) {
	n.changes.Add(1)
	n.all.Invalidate("")
	n.one.Invalidate(name)
	if all := n.current.Load(); all != nil {
		n.current.Store(&catalog[V]{names: all.names}) // read at 0, so the next Get reads
	}
}

// readAll reads the catalog. It makes nothing anew for entries that have not changed.
func (n *Names[V]) readAll(ctx context.Context) (*catalog[V], error) {
	next := &catalog[V]{read: n.Env.Clock.Now().UnixMilli(), names: map[string]*named[V]{}}
	before, aliases, changes := n.current.Load(), map[string]string{}, n.changes.Load()
	for e, err := range n.Catalog().List(ctx, n.Template.Spec()) {
		switch {
		case err != nil:
			return nil, err
		case e.Alias != "":
			aliases[e.Name] = e.Alias
			continue
		}
		if before != nil && before.names[e.Name] != nil && before.names[e.Name].version == e.Version {
			next.names[e.Name] = before.names[e.Name]
			continue
		}
		next.names[e.Name] = &named[V]{e.Version, n.Make(store.NewNamed(n.Template, &e))}
	}
	for alias, name := range aliases {
		if one := next.names[name]; one != nil { // else its entry was removed
			next.names[alias] = one
		}
	}
	if n.changes.Load() != changes { // the read may be from before a write of this process
		next.read = 0
	}
	n.current.Store(next)
	return next, nil
}

// readOne reads the entry of a name that the catalog did not have, and returns nil if it still has none.
func (n *Names[V]) readOne(ctx context.Context, name string) (*V, error) {
	spec := n.Template.Spec()
	if !n.pace.enter(n.Env.Clock.Now()) {
		return nil, &store.UnknownNameError{Resource: spec.Resource, Name: name, Unread: true}
	}
	e, found, err := n.Catalog().Get(ctx, spec, name)
	if err == nil && found && e.Alias != "" {
		e, found, err = n.Catalog().Get(ctx, spec, e.Alias)
	}
	if err != nil || !found || e.Alias != "" { // no alias is of an alias
		return nil, err
	}
	return n.Make(store.NewNamed(n.Template, &e)), nil
}

// mostReads is how many unknown names are read in a second: callers choose them.
const mostReads = 50

// pace bounds the reads in each second of the clock. It is safe for concurrent use. The zero pace is ready.
type pace struct {
	mu    sync.Mutex
	began [mostReads]time.Time // of the last reads, as a ring
	next  int
}

// enter reports whether a read may begin at now.
func (p *pace) enter(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if age := now.Sub(p.began[p.next]); age >= 0 && age < time.Second {
		return false
	}
	p.began[p.next] = now
	p.next = (p.next + 1) % mostReads
	return true
}
