// Package override decodes the items that decide which limits are in force: overrides of an entity or a kind,
// and the heartbeat of regional sync. It resolves them to the shape that a bucket should have
// (docs/design.md, "Overrides and cv").
package override

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/plan"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/internal/lookups"
	"github.com/sluice-go/sluice/runtime/store"
)

// Override is what a table stores for one target, an entity or a kind, of one resource.
type Override struct {
	store.Stored

	Version int64 // ms; 0 for none
	ReadAt  int64 // ms
	Writes  int64 // this session's writes of it before the read
}

// IsQuota reports whether o is a regional quota, stored by regional sync, and not an operator's override.
func (o *Override) IsQuota() bool { return o.Epoch > 0 && o.Overrides() }

// Managed is the attribute of an item that regional sync may write: the epoch of the quota, or 0 once an
// operator has deleted an override there.
const Managed = "managed"

// MaxVersion bounds an override's version, so that the sum of two stays below one revision in a bucket's
// version. As a time it lies in the year 3554.
const MaxVersion = bucket.RevisionUnit/2 - 1

// Decode decodes a config item, which may be empty. version is in ms, 0 for none. It skips limits that spec
// does not have, which another binary wrote, and a quota of a resource that has no regions any more. The
// error is a *store.SetupError.
func Decode(spec *store.Spec, target string, raw codec.Item) (stored store.Stored, version int64, err error) {
	stored = store.Stored{At: target, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(raw) == 0 {
		return stored, 0, nil
	}
	d := codec.Decoder{Item: raw}
	version = d.Int("ver")
	err = d.Err()
	if err == nil && (version < 1 || version > MaxVersion) {
		err = &codec.AttributeError{Attr: "ver", Got: strconv.FormatInt(version, 10), Want: "a time in ms"}
	}
	managed := raw[Managed] != nil
	if managed {
		stored.Epoch = d.Int(Managed)
		if err == nil {
			err = d.Err()
		}
	}
	for i := range spec.Limits {
		if err == nil && (!managed || spec.Regions != nil) {
			stored.Limits[i], err = decodeLimit(&d, spec, i, managed)
		}
	}
	if err != nil {
		return store.Stored{}, 0, &store.SetupError{
			What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, store.Quote(target)),
			Do:   "fix the item " + item.NameOf(raw) + " and raise its ver",
			Err:  err,
		}
	}
	stored.Revision = FormatRevision(version)
	return stored, version, nil
}

// decodeLimit decodes the i-th limit of a config item. It returns nil if the item has none of the limit's
// attributes. It fails if the limit comes back in another way than it should: by refill, with windows, or
// when leases end.
func decodeLimit(d *codec.Decoder, spec *store.Spec, i int, managed bool) (*bucket.Limit, error) {
	windowed, inFlight := spec.Windowed(i), spec.InFlight(i)
	attrs := item.OverrideAttributes(spec.Limits[i])
	if !slices.ContainsFunc(attrs[:], func(attr string) bool { _, ok := d.Item[attr]; return ok }) {
		return nil, nil
	}
	l := &bucket.Limit{
		Capacity: d.Int(attrs[0]), Burst: d.Int(attrs[1]), Refill: d.Int(attrs[2]), Period: d.Int(attrs[3]),
	}
	if err := d.Err(); err != nil {
		return nil, err
	}
	if reason := CheckLimit(spec, i, *l, managed); reason != "" {
		return nil, fmt.Errorf("limit %s: %s", spec.Limits[i], reason)
	}
	got := strconv.FormatInt(l.Refill, 10)
	switch {
	case l.InFlight() == inFlight && l.Windowed() == windowed:
		return l, nil
	case inFlight:
		got += ", with a period of " + strconv.FormatInt(l.Period, 10)
		return nil, &codec.AttributeError{
			Attr: attrs[2], Got: got, Want: "0 and a period of 1, as the limit is of calls in flight",
		}
	case windowed:
		return nil, &codec.AttributeError{Attr: attrs[2], Got: got, Want: "0, as the limit has windows"}
	}
	return nil, &codec.AttributeError{Attr: attrs[2], Got: got, Want: "a positive number"}
}

// CheckLimit returns why l cannot be the i-th limit, or "". Only a quota may be closed; its other numbers are
// those of one token.
func CheckLimit(spec *store.Spec, i int, l bucket.Limit, managed bool) string {
	switch {
	case managed && (l.Windowed() || l.InFlight()):
		return "refill 0 is not above 0: regions divide only limits that refill"
	case managed && l.Closed():
		l.Capacity = bucket.Milli
	}
	return spec.CheckLimit(i, l, 0)
}

// FormatRevision returns a version as users pass it back.
func FormatRevision(version int64) store.Revision {
	return store.Revision(strconv.FormatInt(version, 10))
}

// ParseRevision returns the version in r, 0 for an empty one. ok is false if r does not come from this store.
func ParseRevision(r store.Revision) (version int64, ok bool) {
	if r == "" {
		return 0, true
	}
	version, err := strconv.ParseInt(string(r), 10, 64)
	return version, err == nil && version > 0
}

// Heartbeat is the heartbeat of regional sync as it was read.
type Heartbeat struct {
	store.Heartbeat

	ReadAt int64 // ms
}

// RegionAttribute names the region whose sync wrote the heartbeat. It is a reserved word: an expression needs
// a placeholder for it.
const RegionAttribute = "region"

// DecodeHeartbeat decodes the heartbeat's item, read at an instant in ms. The item may be empty. Its times
// count in a bucket's version, so they have the bounds of versions. The error is a *store.SetupError.
func DecodeHeartbeat(stored codec.Item, readAt int64) (*Heartbeat, error) {
	h := &Heartbeat{ReadAt: readAt}
	if len(stored) == 0 {
		return h, nil
	}
	d := codec.Decoder{Item: stored}
	h.Heartbeat = store.Heartbeat{Epoch: d.Int("epoch"), Since: d.Int("since"), Expires: d.Int("exp")}
	if stored[RegionAttribute] != nil { // versions before regions were named wrote none
		h.Region = d.Text(RegionAttribute)
	}
	err := d.Err()
	if err == nil && (h.Since < 1 || h.Since > MaxVersion) {
		err = &codec.AttributeError{Attr: "since", Got: strconv.FormatInt(h.Since, 10), Want: "a time in ms"}
	}
	if err == nil && (h.Expires < 1 || h.Expires > MaxVersion) {
		err = &codec.AttributeError{Attr: "exp", Got: strconv.FormatInt(h.Expires, 10), Want: "a time in ms"}
	}
	if err == nil && h.Epoch < 1 {
		err = &codec.AttributeError{Attr: "epoch", Got: strconv.FormatInt(h.Epoch, 10), Want: "at least 1"}
	}
	if err != nil {
		return nil, &store.SetupError{
			What: "the heartbeat of regional sync is malformed", Err: err,
			Do: "stop the region's sync and delete the item " + item.NameOf(stored) +
				": quotas count as the floor until it is back",
		}
	}
	return h, nil
}

// ReadHeartbeat reads the heartbeat consistently. now is the clock's time in ms.
func ReadHeartbeat(ctx context.Context, api wire.API, retrier *wire.Retrier, now int64) (*Heartbeat, error) {
	in := &dynamodb.GetItemInput{
		TableName: &retrier.Table, Key: item.HeartbeatKey(), ConsistentRead: aws.Bool(true),
	}
	var out *dynamodb.GetItemOutput
	err := retrier.Do(ctx, func() (err error) {
		out, err = api.GetItem(ctx, in, wire.NoRetry)
		return err
	})
	if err != nil {
		return nil, err
	}
	return DecodeHeartbeat(out.Item, now)
}

// Resolved is the shape that the overrides of an entity and its kind give a bucket. It is not changed once
// made.
type Resolved struct {
	plan.Shape

	ReadAt int64 // when the older of the two overrides was read, ms
	Writes int64 // this session's writes of the two before the read

	// Whole is set if both overrides were read together and consistently. Of two such shapes, the one read later
	// never has the lower version.
	Whole bool
	// Rechecked is set if the overrides were read a second time because the bucket had seen newer ones.
	Rechecked bool

	Quota *Quota // nil if the resource has no regions
}

// Quota is the part of a shape that depends on the heartbeat of regional sync.
type Quota struct {
	Floor []bucket.Limit // in force from Ends on
	Ends  int64          // when the heartbeat expires that the shape relies on, ms; 0 if it relies on none
	// Unsynced says by limit which are the floor since no heartbeat was ever stored. It is nil if one was.
	Unsynced []bool
}

// Resolve returns the shape that the schema and the overrides of an entity (own) and of its kind give a
// bucket at now, in ms. Any change of an override raises the shape's version. heartbeat is not nil if spec
// has regions.
func Resolve(spec *store.Spec, kind int, own, ofKind *Override, heartbeat *Heartbeat, now int64) *Resolved {
	if spec.Regions != nil {
		return resolveQuota(spec, kind, own, ofKind, heartbeat, now)
	}
	return &Resolved{
		Shape: plan.Shape{
			Limits:  store.Resolve(spec.Kinds[kind].Limits, own.Stored, ofKind.Stored),
			Removed: spec.RemovedOf(kind),
			Held:    spec.Held,
			Version: spec.Revision*bucket.RevisionUnit + own.Version + ofKind.Version,
		},
		ReadAt: min(own.ReadAt, ofKind.ReadAt),
	}
}

// resolveQuota is Resolve for a resource with regions.
//
// If a quota is stored, the version is at least the instant at which quotas last came into force or ceased to
// be. So the bucket is reshaped by the first process that notices. A quota with a version at or after the
// heartbeat's end is not in force: it could not be told from what comes after that end.
func resolveQuota(
	spec *store.Spec, kind int, own, ofKind *Override, heartbeat *Heartbeat, now int64,
) *Resolved {
	stored, version, ends := own.Stored, own.Version, int64(0)
	if own.IsQuota() {
		if version >= heartbeat.Expires {
			stored.Limits = nil
		}
		version = max(version, heartbeat.Changed(now))
		if heartbeat.Alive(now) {
			ends = heartbeat.Expires
		}
	}
	schema := spec.Kinds[kind].Limits
	deciding := store.InRegion(spec, kind, []store.Stored{stored, ofKind.Stored}, heartbeat.Heartbeat, now)
	ceiling := store.Resolve(schema, ofKind.Stored)
	quota := &Quota{Floor: store.Resolve(schema, deciding[1]), Ends: ends}
	if own.Epoch == 0 {
		ceiling = store.Resolve(ceiling, own.Stored)
		quota.Floor = store.Resolve(schema, deciding...)
	}
	if heartbeat.Epoch == 0 {
		for i := range schema {
			quota.Unsynced = append(quota.Unsynced, store.Decides(deciding, i) == len(deciding)-1)
		}
	}
	return &Resolved{
		Shape: plan.Shape{
			Limits:  store.Resolve(schema, deciding...),
			Removed: spec.RemovedOf(kind),
			Held:    spec.Held,
			Version: spec.Revision*bucket.RevisionUnit + version + ofKind.Version,
			Ceiling: ceiling,
		},
		ReadAt: min(own.ReadAt, ofKind.ReadAt, heartbeat.ReadAt),
		Quota:  quota,
	}
}

// Full returns what a write that fills img, a bucket read without a schema, stores: the limits by name, the
// names of limits to drop, and the version. An outdated bucket gets the shape r.
func (r *Resolved) Full(spec *store.Spec, img *bucket.Image) (
	limits map[string]bucket.Limit, dropped []string, version int64,
) {
	limits = make(map[string]bucket.Limit, len(img.Extra))
	for _, extra := range img.Extra {
		limits[extra.Name] = extra.Limit
	}
	if !plan.Outdated(img, &r.Shape) {
		return limits, nil, img.Version
	}
	for _, name := range r.Removed {
		if _, has := limits[name]; has {
			delete(limits, name)
			dropped = append(dropped, name)
		}
	}
	for i, name := range spec.Limits {
		if !r.Limits[i].Absent() {
			limits[name] = r.Limits[i]
		}
	}
	return limits, dropped, r.Version
}

// AddsHolds reports whether img, a bucket read without a schema, is to get the shape r, by which a limit
// counts holds that does not in img.
func (r *Resolved) AddsHolds(spec *store.Spec, img *bucket.Image, limit string) bool {
	i := slices.Index(spec.Limits, limit)
	if i < 0 || r.Held == nil || !r.Held[i] || r.Limits[i].Absent() || !plan.Outdated(img, &r.Shape) {
		return false
	}
	b, _ := img.Find(limit)
	return !b.Holds()
}

// Expired reports whether r must not be used at now, in ms, even if the overrides cannot be read again:
// another region may have been given its quota. A shape without regions never expires.
func (r *Resolved) Expired(spec *store.Spec, now int64) bool {
	if r.Quota == nil {
		return false
	}
	return r.Quota.Ends != 0 && now >= r.Quota.Ends || !lookups.TTL(spec.Regions.Window).Fresh(r.ReadAt, now)
}

// InForce returns the limits in force at now, in ms, as far as r tells without reading. No quota outlives its
// heartbeat.
func (r *Resolved) InForce(now int64) []bucket.Limit {
	if r.Quota != nil && r.Quota.Ends != 0 && now >= r.Quota.Ends {
		return r.Quota.Floor
	}
	return r.Limits
}

// Refuse adds to denied, which may be nil, every limit of img that has less than cost at now, in ms, and
// returns it. img is the bucket of an entity, which has the shape r, nil if that is not known.
func (r *Resolved) Refuse(
	denied *store.DeniedError, spec *store.Spec, entity string, img *bucket.Image, cost []int64, now int64,
) *store.DeniedError {
	before := 0
	if denied != nil {
		before = len(denied.Refusals)
	}
	denied = store.Refuse(denied, spec, entity, img, cost, now)
	if r == nil || r.Quota == nil || r.Quota.Unsynced == nil || denied == nil {
		return denied
	}
	for _, refusal := range denied.Refusals[before:] {
		if r.Quota.Unsynced[slices.Index(spec.Limits, refusal.Limit)] {
			denied.Unsynced = true
		}
	}
	return denied
}

// UnsyncedNotice logs once that limits are the floor since no heartbeat was ever stored. The zero value is
// ready. It is safe for concurrent use.
type UnsyncedNotice struct{ once sync.Once }

// Note logs for the first shape that has such a limit. spec is its resource's.
func (n *UnsyncedNotice) Note(logger *slog.Logger, table string, spec *store.Spec, r *Resolved) {
	if r.Quota == nil || !slices.Contains(r.Quota.Unsynced, true) {
		return
	}
	n.once.Do(func() {
		logger.LogAttrs(context.Background(), slog.LevelWarn,
			"sluice: "+unsynced+": "+syncOnce, slog.String("table", table),
			slog.String("resource", spec.Resource), slog.Int64("floor_percent", spec.Regions.Floor))
	})
}

// unsynced and syncOnce say what is wrong with a table without a heartbeat, and what to do about it.
const (
	unsynced = "no regional sync has ever run on this table, so this region has no more than the floor of " +
		"limits that are `global: true`"
	syncOnce = "run `sluice region sync`, one process in each region"
)

// CheckSynced reads the heartbeat at an instant, in ms. It returns a *store.SetupError if none was ever
// stored.
func CheckSynced(ctx context.Context, api wire.API, retrier wire.Retrier, now int64) error {
	var heartbeat *Heartbeat
	err := wire.InTime(ctx, retrier.Table, func(ctx context.Context) (err error) {
		heartbeat, err = ReadHeartbeat(ctx, api, &retrier, now)
		return err
	})
	if err != nil || heartbeat.Epoch > 0 {
		return err
	}
	return &store.SetupError{What: "table " + retrier.Table + ": " + unsynced, Do: syncOnce}
}
