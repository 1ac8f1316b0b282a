// Package override decodes the items that decide which limits are in force: overrides, plans as changed at
// run time, entries of catalogs, and the heartbeat of regional sync. It resolves them to the shape that a
// bucket should have (docs/design.md, "Overrides and cv").
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
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
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

// MaxVersion bounds each of the versions that a bucket's version adds up, so that the sum of six stays below
// one revision. As a time it lies in the year 2498.
const MaxVersion = bucket.RevisionUnit/6 - 1

// Plans is the item with the numbers of all plans of one resource, as they were changed at run time. It is
// not changed once read. The zero value is that of a resource whose plans were not changed.
type Plans struct {
	item codec.Item

	Version int64 // ms; 0 for none
	ReadAt  int64 // ms
	Writes  int64 // this session's writes of it before the read
}

// DecodePlans decodes the item of a resource's plans, which may be empty, except for its numbers. The error
// is a *store.SetupError.
func DecodePlans(spec *store.Spec, raw codec.Item) (*Plans, error) {
	version, err := decodeVersion(raw)
	if err != nil {
		return nil, malformed(spec, "any plan", raw, err)
	}
	return &Plans{item: raw, Version: version}, nil
}

// of returns the numbers of plan for a kind, decoded as Decode does.
func (p *Plans) of(spec *store.Spec, plan string, kind int) (store.Stored, error) {
	stored, _, err := Decode(spec, store.PlanAt(plan, spec.Kinds[kind].Name), p.item)
	return stored, err
}

// VersionOf returns the version of a config item: of an override, or of a resource's plans. The error is a
// *store.SetupError.
func VersionOf(raw codec.Item) (int64, error) {
	version, err := decodeVersion(raw)
	if err != nil {
		return 0, &store.SetupError{
			What: "the config item " + item.NameOf(raw) + " is malformed", Do: "fix it and raise its ver", Err: err,
		}
	}
	return version, nil
}

// decodeVersion returns the version of a config item, 0 if it is empty.
func decodeVersion(raw codec.Item) (int64, error) {
	if len(raw) == 0 {
		return 0, nil
	}
	d := codec.Decoder{Item: raw}
	version := d.Int("ver")
	if d.Err() == nil && (version < 1 || version > MaxVersion) {
		return 0, &codec.AttributeError{Attr: "ver", Got: strconv.FormatInt(version, 10), Want: "a time in ms"}
	}
	return version, d.Err()
}

// malformed returns the error for the config item of a target.
func malformed(spec *store.Spec, target string, raw codec.Item, err error) error {
	return &store.SetupError{
		What: fmt.Sprintf("the override of %s at %s is malformed", spec.Resource, store.Quote(target)),
		Do:   "fix the item " + item.NameOf(raw) + " and raise its ver",
		Err:  err,
	}
}

// Decode decodes the config item of a target, which may be empty. version is in ms, 0 for none. It skips
// limits that spec does not have, which another binary wrote, and a quota of a resource that has no regions
// any more. The error is a *store.SetupError.
func Decode(spec *store.Spec, target string, raw codec.Item) (stored store.Stored, version int64, err error) {
	stored = store.Stored{At: target, Limits: make([]*bucket.Limit, len(spec.Limits))}
	if len(raw) == 0 {
		return stored, 0, nil
	}
	version, err = decodeVersion(raw)
	d := codec.Decoder{Item: raw}
	managed := raw[Managed] != nil
	if managed {
		stored.Epoch = d.Int(Managed)
		if err == nil {
			err = d.Err()
		}
	}
	for i := range spec.Limits {
		if err == nil && (!managed || spec.Regions != nil) {
			attrs := item.OverrideAttributes(target, spec.Limits[i])
			stored.Limits[i], err = decodeLimit(&d, spec, attrs, i, managed)
		}
	}
	if err != nil {
		return store.Stored{}, 0, malformed(spec, target, raw, err)
	}
	stored.Revision = FormatRevision(version)
	return stored, version, nil
}

// FieldsOf returns the limits of a config item whose attributes have a prefix, as records of changes have
// them. Those that this binary does not have, since another wrote them, are among them.
func FieldsOf(raw codec.Item, prefix string) map[string]string {
	fields := map[string]string{}
	for attr := range raw {
		limit, numbers, ok := item.RestatedLimit(attr, prefix)
		if !ok {
			continue
		}
		d := codec.Decoder{Item: raw}
		text := fmt.Sprintf("%d %d %d %d", d.Int(numbers[0]), d.Int(numbers[1]), d.Int(numbers[2]),
			d.Int(numbers[3]))
		if d.Err() == nil {
			fields[limit] = text
		}
	}
	return fields
}

// decodeLimit decodes the i-th limit of a config item from attrs. It returns nil if the item has none of
// these. It fails if the limit comes back in another way than it should: by refill, with windows, or when
// leases end.
func decodeLimit(
	d *codec.Decoder, spec *store.Spec, attrs [4]string, i int, managed bool,
) (*bucket.Limit, error) {
	windowed, inFlight := spec.Windowed(i), spec.InFlight(i)
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

// Notices logs once that limits are the floor since no heartbeat was ever stored, and once that an entity is
// on a plan that this binary does not know. The zero value is ready. It is safe for concurrent use.
type Notices struct{ unsynced, unknown sync.Once }

// Note logs for the first shape that has such a limit or plan. spec is its resource's.
func (n *Notices) Note(logger *slog.Logger, table string, spec *store.Spec, r *Resolved) {
	if r.UnknownPlan {
		n.unknown.Do(func() {
			logger.LogAttrs(context.Background(), slog.LevelWarn,
				"sluice: an entity is on a plan that this limits.yaml does not have: buckets keep their numbers, and "+
					"new ones get the most that any plan gives: deploy the newer limits.yaml here too",
				slog.String("table", table), slog.String("resource", spec.Resource),
				slog.String("entity", store.Quote(r.On.Of)), slog.String("plan", store.Quote(r.On.Name)))
		})
	}
	if r.Quota == nil || !slices.Contains(r.Quota.Unsynced, true) {
		return
	}
	n.unsynced.Do(func() {
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
