package envoy

import (
	"math"
	"strconv"

	ratelimit "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"

	"github.com/sluice-go/sluice/serve/internal/limits"
)

// valueOf returns the value of a key of a descriptor: the first, if the key is there several times.
func valueOf(d *ratelimit.RateLimitDescriptor, key string) (string, bool) {
	for _, e := range d.GetEntries() {
		if e.GetKey() == key {
			return e.GetValue(), true
		}
	}
	return "", false
}

// find returns the first rule that applies to d, nil if none does.
func (all *Rules) find(domain string, d *ratelimit.RateLimitDescriptor) *rule {
	if domain != all.domain {
		return nil
	}
next:
	for _, one := range all.rules {
		for _, p := range one.match {
			value, ok := valueOf(d, p.key)
			if !ok || !p.any && value != p.value {
				continue next
			}
		}
		return one
	}
	return nil
}

// hitsOf returns the hits of a descriptor, and whether the descriptor itself says so. Those of the request
// are 1 if it has none.
func hitsOf(d *ratelimit.RateLimitDescriptor, request uint32) (n int64, own bool) {
	if h := d.GetHitsAddend(); h != nil {
		return int64(min(h.GetValue(), math.MaxInt64)), true
	}
	return int64(max(1, request)), false
}

// ids returns the entity of a descriptor that a's rule applies to.
func (a *acquire) ids(d *ratelimit.RateLimitDescriptor) []limits.ID {
	ids := make([]limits.ID, len(a.entity))
	for i, p := range a.entity {
		ids[i] = limits.ID{Kind: p.kind, ID: p.id}
		if p.key != "" {
			ids[i].ID, _ = valueOf(d, p.key)
		}
	}
	return ids
}

// nameOf returns the name of a descriptor that a's rule applies to, "" if the rule has none.
func (a *acquire) nameOf(d *ratelimit.RateLimitDescriptor) string {
	if a.nameKey == "" {
		return a.name
	}
	name, _ := valueOf(d, a.nameKey)
	return name
}

// cost returns the cost of a call of an entity of a kind, with hits. The error is a *runtime.InvalidError.
func (n *numbers) cost(on *limits.Resource, kind int, hits int64) ([]int64, error) {
	all := make([]limits.Number, len(n.all))
	for i, one := range n.all {
		all[i] = limits.Number{Name: one.name, Text: one.text}
		if one.hits {
			all[i].Text = strconv.FormatInt(hits, 10)
		}
		if !n.usage {
			all[i].Quoted = on.IsMoney(one.name)
		}
	}
	if n.usage {
		return on.CostOf(kind, all)
	}
	return on.Cost(all)
}
