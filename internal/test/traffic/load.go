// Package traffic offers limiters the load of real services, and measures how calls end, in virtual time.
//
// Arrivals are an open loop: a call does not wait for the answers of others. Run belongs into a bubble of
// testing/synctest. There a call takes the time of its requests and of its waiting; the CPU takes none.
// The limiter, the client of package lean and the DynamoDB in the process are the real ones.
package traffic

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluice-go/sluice/internal/test/traffic/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// Load is what callers ask of one table, and how the table's DynamoDB is.
type Load struct {
	// Resource has the limit of each bucket: generated.Small has 2,000 a second, generated.Large 100,000. With
	// prefetch, generated.Pooled has 10,000, and generated.Largepooled 100,000.
	Resource string
	// Users is the number of users of one project, both charged. With 0, calls charge the project alone.
	Users     int
	Processes int
	Policy    runtime.Policy

	// One of the next three says when calls come. Rate is that of Poisson arrivals, a second and process.
	// Callers, of each process, call again once they are answered. Crowd is a number of new entities. All call
	// at once, and as many others a second later.
	Rate    float64
	Callers int
	Crowd   int
	For     time.Duration
	Cold    bool // the processes meet the entities as the calls come; else they have called once before

	// Calls of a Holder run for a while: Runs is the median. They Wait for their slots for so long, or Acquire
	// them if that is 0. With Fresh, each is of a new user of the project.
	Runs, Wait time.Duration
	Fresh      bool

	OneWay         time.Duration // how long a request travels, and its reply again: their median
	Sigma          float64       // of a lognormal latency; 0 is a constant one
	Hold           time.Duration // how long a transaction holds its items
	PartitionUnits float64       // write units a second of one partition key; 0 is no bound
	RequestRate    float64       // requests that DynamoDB works on a second; 0 is no bound
	Throttled      float64       // the probability that a request is throttled
	Seed           uint64        // of arrivals and faults
}

// PerSecond is the limit of each bucket, which is its burst too.
func (l *Load) PerSecond() int64 {
	switch l.Resource {
	case generated.Small:
		return 2_000
	case generated.Pooled:
		return 10_000
	}
	return 100_000
}

// RoundTrip is the median time of a request and its reply.
func (l *Load) RoundTrip() time.Duration { return 2 * l.OneWay }

// latency is the time that a request travels, or a reply.
func (l *Load) latency() memdynamo.Distribution {
	if l.Sigma == 0 {
		return memdynamo.Constant(l.OneWay)
	}
	return memdynamo.LogNormal(l.OneWay, l.Sigma)
}

// BareP99 is the p99 of one request and its reply: a write that meets neither a conflict nor throttling.
func (l *Load) BareP99() time.Duration {
	r, latency := rand.New(rand.NewPCG(l.Seed, 1)), l.latency()
	took := make([]time.Duration, 20_000)
	for i := range took {
		took[i] = latency(r.Float64) + latency(r.Float64)
	}
	slices.Sort(took)
	return percentile(took, 0.99)
}
