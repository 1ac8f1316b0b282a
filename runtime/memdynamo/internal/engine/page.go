package engine

import (
	"strconv"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// asOf returns when the rows are to be read from; the zero time is now.
func (r *reading) asOf(m moment) time.Time {
	var late time.Duration
	if !r.in.ConsistentRead {
		late = m.StaleReads
		if r.index != nil && !r.index.Local {
			late = max(late, m.IndexLag)
		}
	}
	if late == 0 {
		return time.Time{}
	}
	return m.now.Add(-late)
}

// view returns the rows to read, and the table's items at the same time.
func (r *reading) view(m moment) (rows, items *table.View) {
	items = r.table.View("", r.asOf(m))
	if r.index == nil {
		return items, items
	}
	rows = r.table.View(r.index.Name, r.asOf(m))
	return rows, items
}

// maxPage is how many bytes a page may have before it ends.
const maxPage = 1 << 20

// page is what one request reads.
type page struct {
	items   []byte // as JSON, without the brackets; empty if they are only counted
	count   int
	scanned int
	bytes   int
	fetched float64   // units for what came from the table, though an index was read
	last    value.Map // the row after which there may be more; nil: there is none
}

// read reads rows until the page is full or there are no more. Whether there is one more it does not look:
// like the service's, a page that the last row fills has a last key.
func (r *reading) read(m moment) (p page) {
	rows, items := r.view(m)
	limit := 0
	if r.in.Limit != nil {
		limit = *r.in.Limit
	}
	size := 0
	for row := range rows.Items(r.rows) {
		p.scanned++
		item, n := row, value.ItemSize(row)
		p.bytes += n
		if r.fetch {
			item = items.Get(r.table.KeyOf(row))
			n = value.ItemSize(item)
			p.fetched += readUnits(n, r.in.ConsistentRead)
		}
		size += n
		if r.filter == nil || r.filter.Holds(item) {
			p.add(item, r)
		}
		if p.scanned == limit || size >= maxPage {
			p.last = row
			break
		}
	}
	return p
}

// add adds an item that the filter lets through.
func (p *page) add(item value.Map, r *reading) {
	p.count++
	if r.in.selects(countOnly) {
		return
	}
	if p.count > 1 {
		p.items = append(p.items, ',')
	}
	p.items = value.AppendMap(p.items, project(r.projection, item))
}

// usage returns what the page consumes: units for the sum of its rows' sizes, not for each row.
func (r *reading) usage(p page) usage {
	units := readUnits(p.bytes, r.in.ConsistentRead)
	if r.index == nil {
		return usage{table: r.table, base: units}
	}
	u := usage{table: r.table, base: p.fetched}
	u.addIndex(r.index.Name, units)
	return u
}

// partition returns which partition is read.
func (r *reading) partition() partition {
	of := partition{hash: r.rows.Hash}
	if r.index != nil && !r.index.Local {
		of.index = r.index.Name
	}
	return of
}

// answer reads the page, bills it and returns the output.
func (r *reading) answer(db *DB, m moment, operation string) ([]byte, error) {
	p := r.read(m)
	u := r.usage(p)
	if db.chance(m.Throttle) || !r.table.admit(m, demand{of: r.partition(), read: u.total()}) {
		return nil, ThroughputExceeded()
	}
	db.bill(operation, u, Applied)
	out := []byte{'{'}
	if !r.in.selects(countOnly) {
		out = append(append(append(out, `"Items":[`...), p.items...), "],"...)
	}
	out = strconv.AppendInt(append(out, `"Count":`...), int64(p.count), 10)
	out = strconv.AppendInt(append(out, `,"ScannedCount":`...), int64(p.scanned), 10)
	if p.last != nil {
		key := value.Map{}
		for _, a := range r.keys {
			key[a.Name] = p.last[a.Name]
		}
		out = value.AppendMap(append(out, `,"LastEvaluatedKey":`...), key)
	}
	if wantsConsumed(r.in.ReturnConsumedCapacity) {
		out = appendConsumed(append(out, `,"ConsumedCapacity":`...), *r.in.ReturnConsumedCapacity, false, u)
	}
	return append(out, '}'), nil
}
