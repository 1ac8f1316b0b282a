package dynamo

import (
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
)

// quota is what a shape has besides where regions share the limits out: never all of a limit, but this region's share while sync is
// alive, else what every region keeps.
type quota struct {
	floor []bucket.Limit // in force once ends has come
	ends  int64          // when the heartbeat expires that the shape was made by, ms; 0 where it has no part in it
}

// shared reports that l holds a share.
func (l *level) shared() bool { return l.Epoch > 0 && l.Overrides() }

// sharedShape is shapeOf where regions share the limits out.
//
// The version of a level with a share is never below the instant at which shares last came into force or ceased to be: so the bucket
// follows, whoever sees it first. A share whose own version is not below the heartbeat's end could not be told from what comes
// after it, and is not in force.
func sharedShape(spec *runtime.Spec, kind int, own, ofKind *level, b *beat, now int64) *resolved {
	stored, ver, ends := own.Stored, own.ver, int64(0)
	if own.shared() {
		if ver >= b.Expires {
			stored.Limits = nil
		}
		ver = max(ver, b.Changed(now))
		if b.Alive(now) {
			ends = b.Expires
		}
	}
	schema := spec.Kinds[kind].Limits
	deciding := runtime.InRegion(spec, kind, []runtime.Stored{stored, ofKind.Stored}, b.Heartbeat, now)
	ceiling := runtime.Resolve(schema, ofKind.Stored)
	q := &quota{floor: runtime.Resolve(schema, deciding[1]), ends: ends}
	if own.Epoch == 0 {
		ceiling = runtime.Resolve(ceiling, own.Stored)
		q.floor = runtime.Resolve(schema, deciding...)
	}
	return &resolved{
		shape: shape{
			limits:  runtime.Resolve(schema, deciding...),
			removed: spec.Removed,
			cv:      spec.Revision*revisionUnit + ver + ofKind.ver,
			ceiling: ceiling,
		},
		read:  min(own.read, ofKind.read, b.read),
		quota: q,
	}
}

// over reports that s is not to be used at now, whether it can be read again or not: others may have been given what it says.
func (s *resolved) over(spec *runtime.Spec, now int64) bool {
	if s.quota == nil {
		return false
	}
	return s.quota.ends != 0 && now >= s.quota.ends || !lookups.TTL(spec.Regions.Window).Fresh(s.read, now)
}

// inForce returns the limits in force as far as s says: what a process goes by that cannot ask. No share outlives the heartbeat.
func (s *resolved) inForce(now int64) []bucket.Limit {
	if s.quota != nil && s.quota.ends != 0 && now >= s.quota.ends {
		return s.quota.floor
	}
	return s.limits
}

// beyond reports that cost is more of the i-th limit than its bucket, img, will hold, and by what parameters: the bucket's own,
// unless it is to have s's. Of a limit that the bucket does not have, nothing is taken.
func (s *shape) beyond(img *bucket.Image, i int, cost int64) (by bucket.Limit, ok bool) {
	switch {
	case img == nil || outdated(img, s):
		by = s.limits[i]
	case img.Missing[i]:
		return by, false
	default:
		by = img.Balances[i].Limit
	}
	return by, runtime.Beyond(by, cost)
}

// withheld decides on an acquire that wants more of some limit than this region's share will ever hold. ok is false where none does.
// There may be enough once the share is another: that is a denial, made without a write where there is a bucket. Where there is none, one
// is made without limits, older than any shape: regional sync sees by it that somebody calls, and who can be served adds the limits, full.
// What no share can come to is an error of its own.
func (w *want) withheld(v view, now int64) (p plan, ok bool) {
	held, never := false, false
	for i, take := range w.take {
		if by, beyond := w.shape.beyond(v.img, i, take); beyond {
			held = true
			never = never || take > max(by.Burst, w.shape.ceiling[i].Burst)
		}
	}
	full := func(limits []bucket.Limit) *bucket.Image {
		return &bucket.Image{Refilled: now, Balances: bucket.Full(limits), Missing: make([]bool, len(limits))}
	}
	switch {
	case !held:
		return plan{}, false
	case v.img != nil && !v.truth:
		return plan{verdict: look, img: v.img}, true
	case never:
		return plan{verdict: exceed, img: full(w.shape.ceiling)}, true
	case v.img == nil && v.truth:
		n := len(w.take)
		return plan{
			path: create, bare: true, cost: make([]int64, n), limits: make([]bucket.Limit, n), rf: now,
			ttl: expiry(bucket.Full(w.shape.limits), now),
		}, true
	case v.img == nil:
		return plan{verdict: look}, true
	case outdated(v.img, w.shape):
		bare := planReshape(make([]int64, len(w.take)), v.img, w.shape, now)
		return plan{verdict: refuse, img: bare.predict(v.img.Op)}, true
	}
	return plan{verdict: refuse, img: v.img}, true
}
