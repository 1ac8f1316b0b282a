package traffic

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/internal/test/traffic/generated"
	"github.com/sluice-go/sluice/runtime"
)

// Rows returns all rows. Their names start with the kind of load.
func Rows() []Row {
	rows := openRows()
	rows = append(rows, siblingRows()...)
	rows = append(rows, closedRows()...)
	rows = append(rows, pooledRows()...)
	rows = append(rows, crowdRows()...)
	rows = append(rows, slotRows()...)
	return append(rows, Row{
		Name: "throttled: half of all requests, 1 x 1 caller",
		Load: Load{
			Resource: generated.Large, Processes: 1, Callers: 1, OneWay: 2 * time.Millisecond, Throttled: 0.5,
			Policy: runtime.Deny, For: 30 * time.Second,
		},
		Bars: []Bar{exact(), failed(1), requests(2.2)},
	})
}

// openRows are processes that share one bucket, below 0.8 of its limit.
func openRows() []Row {
	var rows []Row
	for _, l := range []struct {
		processes int
		rate      float64 // of each
		resource  string
		roundTrip int // ms
		units     float64
		compared  bool
	}{
		{1, 400, generated.Small, 10, 1.3, false},
		{2, 10, generated.Small, 10, 1.7, false},
		{2, 40, generated.Small, 10, 1.3, false},
		{2, 150, generated.Small, 10, 1.3, false},
		{2, 150, generated.Large, 10, 1.3, true},
		{2, 400, generated.Small, 4, 1.3, false},
		{4, 400, generated.Large, 4, 1.3, true},
		{8, 150, generated.Small, 10, 1.3, false},
		{16, 10, generated.Small, 4, 1.7, false},
		{16, 40, generated.Small, 4, 1.4, true},
		{16, 100, generated.Small, 10, 1.3, false},
		{16, 400, generated.Large, 4, 1.3, false},
		{64, 100, generated.Large, 4, 1.3, false},
	} {
		load := Load{
			Resource: l.resource, Processes: l.processes, Rate: l.rate, Policy: runtime.Deny,
			OneWay: time.Duration(l.roundTrip) * time.Millisecond / 2,
		}
		// enough calls that one in a hundred is many, and not more
		load.For = time.Duration(max(2.5, min(40, 4000/(l.rate*float64(l.processes)))) * float64(time.Second))
		name := fmt.Sprintf("open: %d x %.0f/s, %s bucket, %d ms", l.processes, l.rate, l.resource, l.roundTrip)
		bars := func(last Bar) []Bar { return []Bar{exact(), failed(0), slowest(0.95), units(l.units), last} }
		rows = append(rows, Row{name, load, bars(p99(6)), l.compared, true})
		load.Sigma = 0.7
		rows = append(rows, Row{name + ", lognormal", load, bars(p99OverBare(3)), false, true})
	}
	cold := rows[len(rows)-4]
	cold.Name, cold.Load.Cold = cold.Name+", a cold start", true
	rows = append(rows, cold)
	for _, processes := range []int{16, 64} {
		rows = append(rows, Row{
			Name: fmt.Sprintf("open: %d x 100/s, partition of 1,000 units", processes),
			Load: Load{
				Resource: generated.Large, Processes: processes, Rate: 100, OneWay: 2 * time.Millisecond,
				PartitionUnits: 1000, Policy: runtime.Deny, For: 4 * time.Second,
			},
			Bars: []Bar{exact(), failed(0), slowest(0.95), p99ms(500)}, Prefetched: true,
		})
	}
	return rows
}

// pooledRows are loads of other rows with prefetch. In their first half second, processes learn the demand:
// without that, the first one takes 0.019 units.
func pooledRows() []Row {
	row := func(name string, load Load, bars ...Bar) Row {
		load.OneWay, load.Policy = 2*time.Millisecond, runtime.Deny
		return Row{Name: "pooled: " + name, Load: load, Bars: append([]Bar{exact(), failed(0)}, bars...)}
	}
	open := func(processes int, rate float64) Load {
		return Load{Resource: generated.Pooled, Processes: processes, Rate: rate, For: 10 * time.Second}
	}
	partition := open(16, 440)
	partition.PartitionUnits = 1000
	siblings := open(16, 100)
	siblings.Users = 8
	return []Row{
		row("16 x 440/s", open(16, 440), slowest(0.97), units(0.025), p50(0), p99(1)),
		row("64 x 100/s", open(64, 100), slowest(0.97), units(0.15), p50(0), p99(2)),
		row("16 x 440/s, partition of 1,000 units", partition, slowest(0.97), p99(1)),
		row("8 siblings, 16 x 100/s", siblings, slowest(0.97), units(1.3), p99(4)),
		row("1 x 64 callers", Load{
			Resource: generated.Largepooled, Processes: 1, Callers: 64, For: 4 * time.Second,
		}, units(0.003), p50(0)),
	}
}

// siblingRows are 64 users of one project.
func siblingRows() []Row {
	const roundTrip = 2 // ms
	var rows []Row
	row := func(processes int, rate float64, hold int, bars ...Bar) {
		rows = append(rows, Row{
			Name: fmt.Sprintf("siblings: 64, %d x %.0f/s, hold %d ms", processes, rate/float64(processes), hold),
			Load: Load{
				Resource: generated.Small, Users: 64, Processes: processes, Rate: rate / float64(processes),
				OneWay: roundTrip * time.Millisecond / 2, Hold: time.Duration(hold) * time.Millisecond,
				Policy: runtime.Deny, For: 10 * time.Second,
			},
			Bars: append([]Bar{exact(), failed(0), slowest(0.95)}, bars...), Prefetched: true,
		})
	}
	for _, rate := range []float64{50, 200, 400} {
		row(1, rate, 3, p99(12), units(4.3))
	}
	for _, hold := range []int{0, 1, 10} {
		row(1, 200, hold, p99(12), units(4.3))
	}
	row(4, 100, 3, p99ms(40*(roundTrip+3)), units(6.5))
	row(4, 400, 3, p99ms(40*(roundTrip+3)), units(6.5))
	row(4, 400, 10, p99ms(1000), units(6.5))
	return rows
}

// closedRows are callers that call again once they are answered.
func closedRows() []Row {
	row := func(processes, callers int, bars ...Bar) Row {
		return Row{
			Name: fmt.Sprintf("closed: %d x %d callers", processes, callers),
			Load: Load{
				Resource: generated.Large, Processes: processes, Callers: callers, OneWay: time.Millisecond,
				Policy: runtime.Deny, For: time.Second,
			},
			Bars: append([]Bar{exact(), failed(0)}, bars...),
		}
	}
	many := row(16, 64, p99(5), perSecond(240_000))
	many.Load.For = 150 * time.Millisecond // for as long as the bucket is more than half full
	siblings := row(1, 64)
	siblings.Name = "closed: 1 x 64 siblings, hold 3 ms"
	siblings.Load.Users, siblings.Load.Hold = 64, 3*time.Millisecond
	return []Row{
		row(1, 64, p50(1.2), units(0.02), perSecond(15_200)),
		// before the scheduler: 3.0 RTT, 0.124 units, 16,000/s; 1.16 units, 6,870/s; 253,000/s
		row(4, 16, p99(3.2), units(0.13), perSecond(15_200)),
		row(16, 1, units(1.22), perSecond(6_520)),
		many, siblings,
	}
}

// crowdRows are crowds of new entities in one process, under the policy allow.
func crowdRows() []Row {
	row := func(name string, resource string, users, crowd int, bars ...Bar) Row {
		return Row{
			Name: name,
			Load: Load{
				Resource: resource, Users: users, Processes: 1, Crowd: crowd, RequestRate: 2000,
				OneWay: time.Millisecond, Policy: runtime.Allow, For: 2 * time.Second,
			},
			Bars: append([]Bar{exact()}, bars...),
		}
	}
	var rows []Row
	for _, n := range []int{1_000, 10_000} {
		rows = append(rows,
			row(fmt.Sprintf("crowd: %d new projects", n), generated.Large, 0, n, byAllow(0)),
			row(fmt.Sprintf("crowd: %d new users of a project", n), generated.Large, 1, n, byAllow(0)),
		)
	}
	// the project's local bucket: its burst, and the refill until the last crowd is answered
	return append(rows, row("crowd: 10000 new users of a project, small bucket", generated.Small, 1, 10_000,
		unrecorded(2_000+2_000*3)))
}
