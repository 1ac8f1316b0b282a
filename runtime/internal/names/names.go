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
	"github.com/sluice-go/sluice/runtime/internal/deadlines"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Names has one V for each name of a template. It is safe for concurrent use.
type Names[V any] struct {
	Config[V]

	all        *lookups.Cache[*catalog[V]] // under the key ""
	current    atomic.Pointer[catalog[V]]  // as last read; nil before the first read
	refreshing atomic.Bool
	began      atomic.Int64            // when the read under way began, ms; 0 if none is
	failed     atomic.Pointer[failure] // of the last read; nil if it did not fail
	one        *lookups.Cache[*V]      // names that are not in current; nil for a name without an entry
	pace       pace                    // of the reads of one

	mu      sync.Mutex // held while current is replaced
	changes int        // writes of this process to the catalog
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

// failure is of a read of a catalog.
type failure struct {
	at  int64 // when, ms
	err error
}

// isOutage reports whether err says that the store did not answer.
func isOutage(err error) bool {
	_, down := errors.AsType[*store.UnavailableError](err)
	return down
}

// named is what was made for a name, and the version of its entry.
type named[V any] struct {
	name    string // not that of an alias
	version int64
	value   *V
}

// Bounds of the look-ups of single names.
const (
	mostUnknown = 10_000 // names that are remembered
	turns       = 8      // reads at a time
)

// Times of reads of a catalog that is known.
const (
	mostWait = 500 * time.Millisecond // how long a call waits at most for a read that is due
	retryIn  = time.Second            // no read begins so soon after one that failed
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
	o = lookups.Options{Size: mostUnknown, Turns: turns, Tasks: c.Tasks, Enter: n.enter,
		Subject: func(name string) string {
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
	all, now := n.current.Load(), n.Env.Clock.Now().UnixMilli()
	if all == nil || !lookups.TTL(n.Env.CacheTTL/2).Fresh(all.read, now) {
		var err error
		if all, err = n.renew(ctx, all, now); err != nil {
			return nil, err
		}
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

// renew has the catalog read again, of which known was read last, nil for never. It waits for the read if
// known must not be used any more, but not for a store that does not answer: then known serves.
func (n *Names[V]) renew(ctx context.Context, known *catalog[V], now int64) (*catalog[V], error) {
	if known == nil {
		return n.all.Get(ctx, "")
	}
	due := !lookups.TTL(n.Env.CacheTTL).Fresh(known.read, now)
	if f := n.failed.Load(); f != nil && lookups.TTL(retryIn).Fresh(f.at, now) {
		if due && !isOutage(f.err) {
			return nil, f.err
		}
		return known, nil
	}
	if !due {
		n.refresh(ctx)
		return known, nil
	}
	wait := mostWait
	if began := n.began.Load(); began != 0 {
		wait -= time.Duration(max(0, now-began)) * time.Millisecond
	}
	if deadline, ok := ctx.Deadline(); ok {
		wait = min(wait, deadlines.Left(deadline)/2)
	}
	if wait <= 0 {
		return known, nil
	}
	bound, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	next, err := n.all.Get(bound, "")
	if isOutage(err) {
		return known, nil
	}
	return next, err
}

// refresh begins a read beside calls, unless one that refresh has begun is under way.
func (n *Names[V]) refresh(ctx context.Context) {
	if !n.refreshing.CompareAndSwap(false, true) {
		return
	}
	ctx = context.WithoutCancel(ctx)
	n.Tasks.Start(func() {
		defer n.refreshing.Store(false)
		_, _ = n.all.Refresh(ctx, "")
	})
}

// Invalidate makes the next Get read. The process has changed the entry of name.
func (n *Names[V]) Invalidate(name string) {
	n.all.Invalidate("")
	n.one.Invalidate(name)
	n.failed.Store(nil)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.changes++
	if all := n.current.Load(); all != nil {
		n.current.Store(&catalog[V]{names: all.names}) // read at 0, so the next Get reads
	}
}

// readAll reads the catalog, and notes when that fails.
func (n *Names[V]) readAll(ctx context.Context) (*catalog[V], error) {
	n.began.Store(n.Env.Clock.Now().UnixMilli())
	next, err := n.list(ctx)
	n.began.Store(0)
	var failed *failure
	if err != nil {
		failed = &failure{n.Env.Clock.Now().UnixMilli(), err}
	}
	n.failed.Store(failed)
	return next, err
}

// list reads the catalog. It makes nothing anew for entries that have not changed. A read may be of an
// earlier state than the last one: then the later entry stays.
func (n *Names[V]) list(ctx context.Context) (*catalog[V], error) {
	next := &catalog[V]{read: n.Env.Clock.Now().UnixMilli(), names: map[string]*named[V]{}}
	n.mu.Lock()
	before, changes := n.current.Load(), n.changes
	n.mu.Unlock()
	aliases := map[string]string{}
	for e, err := range n.Catalog().List(ctx, n.Template.Spec()) {
		switch {
		case err != nil:
			return nil, err
		case e.Alias != "":
			aliases[e.Name] = e.Alias
			continue
		}
		next.names[e.Name] = before.last(&e)
		if next.names[e.Name] == nil {
			next.names[e.Name] = &named[V]{e.Name, e.Version, n.Make(store.NewNamed(n.Template, &e))}
		}
	}
	for alias, name := range aliases {
		if one := next.names[name]; one != nil && one.name == name { // else its entry was removed
			next.names[alias] = one
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changes != changes { // the read may be from before a write of this process
		next.read = 0
	}
	n.current.Store(next)
	return next, nil
}

// last returns what c has of e, unless that is from before e.
func (c *catalog[V]) last(e *store.Entry) *named[V] {
	if c == nil {
		return nil
	}
	if one := c.names[e.Name]; one != nil && one.name == e.Name && one.version >= e.Version {
		return one
	}
	return nil
}

// enter returns why a name is not looked up now, if it is not.
func (n *Names[V]) enter(name string) error {
	if n.pace.enter(n.Env.Clock.Now()) {
		return nil
	}
	return &store.UnknownNameError{Resource: n.Template.Spec().Resource, Name: name, Unread: true}
}

// readOne reads the entry of a name that the catalog did not have, and returns nil if it still has none.
func (n *Names[V]) readOne(ctx context.Context, name string) (*V, error) {
	spec := n.Template.Spec()
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
