package regionsim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// tableFace is a region's table as one of its syncs calls it: a region.Table.
type tableFace struct{ *instance }

// page is how many buckets are read by one call.
const page = 100

var errRefused = errors.New("regionsim: refused")

// errUnsure is a caller's error for a write whose reply was lost.
var errUnsure = errors.New("regionsim: no reply")

// Each calls f with every bucket.
func (t tableFace) Each(_ context.Context, resource string, f func(entity string, img *bucket.Image)) error {
	seen := 0
	for _, flow := range t.home.flows {
		if flow.series.place.resource != resource {
			continue
		}
		if seen%page == 0 {
			if err := t.call(tables, "each"); err != nil {
				return err
			}
		}
		seen++
		t.world.judge.Buckets++
		t.world.flow(t.home, flow)
		if img := t.world.image(flow); img != nil {
			f(flow.series.entity, img)
		}
	}
	return nil
}

// Get returns what is stored at entities and kinds.
func (t tableFace) Get(_ context.Context, spec *store.Spec, scopes ...string) ([]store.Stored, error) {
	if err := t.call(tables, "get"); err != nil {
		return nil, err
	}
	all := make([]store.Stored, 0, len(scopes))
	for _, scope := range scopes {
		if scope == kind {
			r := slices.Index(t.world.specs, spec)
			if r < 0 {
				r = slices.IndexFunc(t.world.specs, func(s *store.Spec) bool { return s.Resource == spec.Resource })
			}
			var limits []*bucket.Limit
			version := int64(0)
			for _, k := range t.home.table.kinds[r] {
				limits, version = append(limits, k.override), max(version, k.version)
			}
			all = append(all, stored(scope, limits, len(spec.Limits), 0, version))
			continue
		}
		s, err := t.world.find(scope, spec.Resource)
		if err != nil {
			return nil, err
		}
		e := &t.home.table.entries[s.index]
		all = append(all, stored(scope, e.limits, len(spec.Limits), e.epoch, e.version))
	}
	return all, nil
}

// PutQuota stores a quota.
func (t tableFace) PutQuota(_ context.Context, spec *store.Spec, quota store.Stored) (store.Revision, error) {
	err := t.call(quotas, "quota")
	if err != nil && !errors.Is(err, errUnsure) {
		return "", err
	}
	s, unknown := t.world.find(quota.At, spec.Resource)
	if unknown != nil {
		return "", unknown
	}
	e := &t.home.table.entries[s.index]
	if e.operator && e.overrides() {
		t.world.trace(t.home, "quota %s on %s: an operator's", s.entity, s.place.resource)
		return "", &store.ConflictError{Resource: spec.Resource, At: quota.At}
	}
	version := max(e.version+1, t.world.millis(0))
	if quota.Revision != "" {
		known, bad := strconv.ParseInt(string(quota.Revision), 10, 64)
		if bad != nil {
			return "", fmt.Errorf("regionsim: revision %q is not one of this table's: %w", quota.Revision, bad)
		}
		version = max(version, known+1)
	}
	t.world.trace(t.home, "quota %s on %s: %s -> %s, epoch %d %s", s.entity, s.place.resource,
		inTokens(e.limits), inTokens(quota.Limits), quota.Epoch, lost(err))
	t.home.table.put(s, terms{limits: slices.Clone(quota.Limits), epoch: quota.Epoch}, version)
	t.world.judge.shared(t.home, s)
	if err != nil {
		return "", err
	}
	return store.Revision(strconv.FormatInt(version, 10)), nil
}

// Grant adds tokens to a bucket that has these limits.
func (t tableFace) Grant(
	_ context.Context, spec *store.Spec, entity string, limits []bucket.Limit, tokens []int64,
) (bool, error) {
	err := t.call(quotas, "grant")
	if err != nil && !errors.Is(err, errUnsure) {
		return false, err
	}
	s, unknown := t.world.find(entity, spec.Resource)
	if unknown != nil {
		return false, unknown
	}
	f := t.home.flows[s.index]
	t.world.flow(t.home, f)
	if !f.exists || !slices.Equal(f.limits, limits) {
		return false, err
	}
	t.world.trace(t.home, "grant %s on %s: %v %s", s.entity, s.place.resource, tokens, lost(err))
	for i, n := range tokens {
		f.tokens[i] = min(f.tokens[i]+float64(n), float64(limits[i].Burst))
		t.world.judge.Granted += n
	}
	return true, err
}

// Heartbeat returns what is stored.
func (t tableFace) Heartbeat(context.Context) (store.Heartbeat, error) {
	if err := t.call(tables, "heartbeat"); err != nil {
		return store.Heartbeat{}, err
	}
	return t.home.table.beat.Heartbeat, nil
}

// PutHeartbeat stores a heartbeat.
func (t tableFace) PutHeartbeat(_ context.Context, h store.Heartbeat) error {
	err := t.call(beats, "beat")
	if err != nil && !errors.Is(err, errUnsure) {
		return err
	}
	stored, now := t.home.table.beat.Heartbeat, t.world.millis(t.skew)
	if err := stored.Another(h.Region, now); err != nil {
		return err
	}
	if stored.Epoch > h.Epoch || stored.Epoch == h.Epoch && stored.Expires > h.Expires {
		t.world.trace(t.home, "beat: epoch %d until %s: a later one is stored", h.Epoch, until(h.Expires))
		return &store.ConflictError{At: "heartbeat"}
	}
	if h.Since = stored.Since; stored.Epoch != h.Epoch || !stored.Alive(now) {
		h.Since = now
	}
	t.world.trace(t.home, "beat: epoch %d until %s %s", h.Epoch, until(h.Expires), lost(err))
	t.home.table.pulse(h)
	t.world.judge.beaten(t.home)
	return err
}

// until writes an instant in ms as the trace does.
func until(ms int64) string {
	return fmt.Sprintf("%.3fs", time.UnixMilli(ms).Sub(begin).Seconds())
}

func lost(err error) string {
	if err != nil {
		return "(the reply is lost)"
	}
	return ""
}

// inTokens writes limits in tokens.
func inTokens(limits []*bucket.Limit) []string {
	var all []string
	for _, l := range limits {
		if l == nil {
			all = append(all, "-")
		} else {
			all = append(all, strconv.FormatInt(l.Capacity/bucket.Milli, 10))
		}
	}
	return all
}
