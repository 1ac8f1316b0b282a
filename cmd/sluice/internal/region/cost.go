package region

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/internal/tool/texttable"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/store"
)

// prices are in dollars: those of on-demand tables in us-east-1, unless flags say others.
type prices struct {
	Read     float64 `name:"price-read" default:"0.125" placeholder:"USD" help:"Price of a million read units."`
	Write    float64 `name:"price-write" default:"0.625" placeholder:"USD" help:"Of a million write units."`
	Stream   float64 `name:"price-stream" default:"0.20" placeholder:"USD" help:"Of a million stream reads."`
	Put      float64 `name:"price-put" default:"5" placeholder:"USD" help:"Of a million PUTs to S3."`
	Get      float64 `name:"price-get" default:"0.40" placeholder:"USD" help:"Of a million GETs from S3."`
	Transfer float64 `name:"price-transfer" default:"0.02" placeholder:"USD" help:"Of a GB from S3."`
}

// check returns a usage error for a price that is none.
func (c prices) check() error {
	for _, p := range []struct {
		flag    string
		dollars float64
	}{
		{"read", c.Read}, {"write", c.Write}, {"stream", c.Stream}, {"put", c.Put}, {"get", c.Get},
		{"transfer", c.Transfer},
	} {
		if !(p.dollars >= 0 && p.dollars <= 1e6) { // NaN fails too
			return program.Usagef("--price-%s %v is no price: pass dollars, 0 or above", p.flag, p.dollars)
		}
	}
	return nil
}

// cost is what one kind of request comes to in 30 days.
type cost struct {
	Kind    string  `json:"kind"`
	N       float64 `json:"amount"` // requests, units or GB
	Dollars float64 `json:"dollars"`
}

// Figures of docs/regions.md.
const (
	month       = 30 * 24 * time.Hour
	bucketUnits = 0.52 // read units of a bucket in an audit
	auditEvery  = 24 * time.Hour
	lastWindows = 6 // of which writes are counted
)

// costsOf returns what a region's sync comes to if it goes on as in its last windows. Its stream is taken to
// have one shard.
func (c prices) costsOf(s *region.Snapshot, specs []*store.Spec, regions int) ([]cost, error) {
	window := time.Duration(s.Window) * time.Millisecond
	cycles, reads, writes := float64(month)/float64(window), 0.0, 1.0 // the heartbeat
	for _, spec := range specs {
		for i := range spec.Kinds {
			if spec.Regions != nil && spec.Kinds[i].Limits != nil {
				reads++
			}
		}
	}
	for i := range s.Entries {
		if e := &s.Entries[i]; e.Wrote > s.GeneratedAt-lastWindows*s.Window {
			writes += 1.0 / lastWindows
		}
	}
	size, err := packedSize(s)
	if err != nil {
		return nil, err
	}
	audits := float64(month/auditEvery) * float64(len(s.Entries)) * bucketUnits
	all := []cost{
		{"read units", cycles*reads + audits, c.Read},
		{"write units", cycles * writes, c.Write},
		{"stream reads", float64(month / idleFor(window)), c.Stream},
		{"PUTs to S3", cycles, c.Put},
		{"GETs from S3", cycles * float64(regions), c.Get},
		{"GB from S3", cycles * float64(regions-1) * float64(size) / 1e9, c.Transfer},
	}
	for i := range all {
		if all[i].Dollars *= all[i].N / 1e6; all[i].Kind == "GB from S3" {
			all[i].Dollars *= 1e6
		}
	}
	return all, nil
}

// packedSize returns the bytes of a snapshot as S3 stores it. Those of other regions are about as long.
func packedSize(s *region.Snapshot) (int, error) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	err := json.NewEncoder(z).Encode(s)
	return packed.Len(), errors.Join(err, z.Close())
}

// regionCosts is what one region's sync comes to.
type regionCosts struct {
	Region string  `json:"region"`
	Costs  []cost  `json:"costs"`
	Total  float64 `json:"dollars"`
}

// costs returns what the syncs come to of all regions that have published.
func (c prices) costs(w worldSeen, specs []*store.Spec) (all []regionCosts, err error) {
	for _, site := range w.sites {
		if site.snap == nil {
			continue
		}
		own := regionCosts{Region: site.name}
		if own.Costs, err = c.costsOf(site.snap, specs, len(w.sites)); err != nil {
			return nil, err
		}
		for _, k := range own.Costs {
			own.Total += k.Dollars
		}
		all = append(all, own)
	}
	return all, nil
}

// describeCosts prints a table of all regions.
func describeCosts(p program.Env, all []regionCosts) error {
	if len(all) == 0 {
		p.Note("no region has published, so nothing is known of costs\n")
		return nil
	}
	head, align := []string{"IN 30 DAYS"}, "l"
	for _, r := range all {
		head, align = append(head, r.Region, ""), align+"rr"
	}
	rows := [][]string{head}
	for i, kind := range all[0].Costs {
		row := []string{kind.Kind}
		for _, r := range all {
			row = append(row, texttable.Count(int64(r.Costs[i].N+0.5)), fmt.Sprintf("$%.2f", r.Costs[i].Dollars))
		}
		rows = append(rows, row)
	}
	last := []string{"in all"}
	for _, r := range all {
		last = append(last, "", fmt.Sprintf("$%.2f", r.Total))
	}
	return texttable.Write(p.Stdout, "", align, append(rows, last))
}
