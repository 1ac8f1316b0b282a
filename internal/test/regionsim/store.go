package regionsim

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// store is where snapshots are published.
type backend struct {
	world   *world
	objects map[string][]object // versions, the newest last
}

// object is a version: nil where it was lost.
type object struct {
	data []byte
	at   time.Duration
}

// remember is how many versions of an object readers that lag may see.
const remember = 20

func (s *backend) put(name string, data []byte) {
	all, keep := s.objects[name], 0
	if slices.ContainsFunc(s.world.Faults, func(f Fault) bool { return f.Kind == Lag }) {
		keep = remember - 1
	}
	all = slices.Delete(all, 0, max(0, len(all)-keep))
	s.objects[name] = append(all, object{data, s.world.now})
}

// get returns an object as it was at an instant.
func (s *backend) get(name string, at time.Duration) []byte {
	for _, o := range slices.Backward(s.objects[name]) {
		if o.at <= at {
			return o.data
		}
	}
	return nil
}

// storeFace is the store as a region's sync calls it: a region.Snapshots.
type storeFace struct{ *instance }

// Get returns an object.
func (s storeFace) Get(_ context.Context, name string) ([]byte, error) {
	about := gets
	if !strings.HasPrefix(name, s.home.name+"/") {
		about = peers
	}
	if err := s.call(about, "read "+name); err != nil {
		return nil, err
	}
	at := s.world.now
	if about == peers {
		at -= s.host.lag()
	}
	data := s.world.objects.get(name, at)
	if data == nil {
		return nil, fmt.Errorf("regionsim: %s: %w", name, fs.ErrNotExist)
	}
	return slices.Clone(data), nil
}

// Put replaces an object.
func (s storeFace) Put(_ context.Context, name string, data []byte) error {
	err := s.call(puts, "put")
	if err != nil && !errors.Is(err, errUnsure) {
		return err
	}
	s.world.judge.published(s.home, data)
	if s.world.Trace != nil {
		s.world.trace(s.home, "put %s %s", brief(data), lost(err))
	}
	s.world.objects.put(name, slices.Clone(data))
	return err
}
