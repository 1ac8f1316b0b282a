package gen

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sluice-go/sluice/gen/internal/breaking"
	"github.com/sluice-go/sluice/gen/internal/expr"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Schema is what a limits.yaml says, as commands that read and write tables need it. All is in the file's order.
type Schema struct {
	Revision  int64    // of the numbers
	Stores    []string // StoreDynamoDB, StoreRedis or both
	Kinds     []Kind
	Resources []Resource
}

// Stores that code is generated for, as Schema.Stores names them.
const (
	StoreDynamoDB = schema.StoreDynamoDB
	StoreRedis    = schema.StoreRedis
)

// Kind is a kind of entity: its ids are stored as <Name>-<id>.
type Kind struct {
	Name   string
	Parent int // index into Schema.Kinds, -1 for none; following Parent always ends
}

// Resource is something that is limited.
type Resource struct {
	Name    string
	Limits  []string  // their names
	Removed []string  // names of limits that buckets may still hold
	Charged []Charged // the kinds that have a bucket, each once
	Cascade string    // atomic, compensated or none
	Shadow  bool      // its calls are never refused
	Regions *Regions  // who shares its limits out; nil where each table has them for itself

	OnUnavailable string // allow, deny or local
	LazySettle    bool
}

// Regions share out the limits of a resource.
type Regions struct {
	Names  []string      // sorted
	Floor  int64         // what every region keeps of a limit, in percent
	Window time.Duration // between two runs of sync
}

// Charged is a kind that has a bucket of a resource, and that bucket's numbers.
type Charged struct {
	Kind    int       // index into Schema.Kinds
	Limits  []Numbers // one for each of Resource.Limits
	PerCall []int64   // one for each of Resource.Limits: what a cost of 0 means, in whole tokens
}

// Numbers is what makes a token bucket: Capacity, Burst and Refill are whole tokens, of which Refill are added each Period,
// whole milliseconds. All are positive.
type Numbers = schema.Numbers

// Load reads and checks the limits.yaml at path. The error is a Problems if the file is at fault.
func Load(path string) (*Schema, error) {
	from, err := sound(path)
	if err != nil {
		return nil, err
	}
	s := &Schema{Revision: from.Revision, Stores: from.Stores}
	for _, k := range from.Kinds {
		s.Kinds = append(s.Kinds, Kind{Name: k.Name, Parent: k.Parent})
	}
	for _, r := range from.Resources {
		own := Resource{
			Name: r.Name, Removed: r.Removed, Cascade: r.Cascade, Shadow: r.Shadow,
			OnUnavailable: r.OnUnavailable, LazySettle: r.Settle == schema.SettleLazy,
		}
		if g := from.Regions; r.Global {
			own.Regions = &Regions{Names: g.Names, Floor: g.Floor, Window: g.Window}
		}
		for _, l := range r.Limits {
			own.Limits = append(own.Limits, l.Name)
		}
		for _, c := range r.Charged {
			own.Charged = append(own.Charged, Charged{Kind: c.Kind, Limits: c.Limits, PerCall: c.PerCall})
		}
		s.Resources = append(s.Resources, own)
	}
	return s, nil
}

// sound returns what the schema at path says; the error is a Problems if it has any.
func sound(path string) (*schema.Schema, error) {
	s, problems, err := read(path)
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		problems.Sort()
		return nil, problems
	}
	return s, nil
}

// read returns what the schema at path says, which is of use only if there are no problems. They are not sorted.
func read(path string) (*schema.Schema, Problems, error) {
	src, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil, fmt.Errorf("read schema: %w (sluice init writes one)", err)
	case errors.Is(err, syscall.EISDIR):
		return nil, nil, fmt.Errorf("read schema: %s is a folder: name the file in it, such as %s", path, filepath.Join(path, "limits.yaml"))
	case err != nil:
		return nil, nil, fmt.Errorf("read schema: %w", err)
	}
	s, problems := schema.Read(path, src)
	return s, slices.Concat(problems, expr.Check(s), breaking.Check(s)), nil
}
