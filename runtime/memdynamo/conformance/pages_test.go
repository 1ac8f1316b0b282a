package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
)

// pageLimit ends a paged request that does not end by itself.
const pageLimit = 100

// readAll sends a query or scan for each of its segments and until its pages end, and returns all in one, or
// the first reply that is an exception.
func (r *run) readAll(ctx context.Context, o *orders, body string) (answer, error) {
	all := pages{items: []any{}}
	for segment := range max(o.segments, 1) {
		request, err := parseJSON([]byte(body))
		if err != nil {
			return answer{}, err
		}
		members, ok := request.(map[string]any)
		if !ok {
			return answer{}, fmt.Errorf("no request that has pages: %s", body)
		}
		if o.segments > 0 {
			members["Segment"], members["TotalSegments"] = segment, o.segments
		}
		if got, err := r.readPages(ctx, o.header, members, &all); err != nil || got.status != http.StatusOK {
			return got, err
		}
	}
	return answer{http.StatusOK, all.tree(o.segments == 0)}, nil
}

// pages are the pages of a query or scan as one reply.
type pages struct {
	items          []any
	count, scanned int64
	number         int
}

// tree is the pages as one reply. How many there were is not fixed when the items fall into segments by their
// hash.
func (p *pages) tree(counted bool) any {
	tree := map[string]any{"Items": p.items, "Count": json.Number(strconv.FormatInt(p.count, 10)),
		"ScannedCount": json.Number(strconv.FormatInt(p.scanned, 10))}
	if counted {
		tree["Pages"] = json.Number(strconv.Itoa(p.number))
	}
	return tree
}

// readPages sends a request until its pages end, and adds them to all.
func (r *run) readPages(
	ctx context.Context, header http.Header, request map[string]any, all *pages,
) (answer, error) {
	for range pageLimit {
		got, err := r.send(ctx, header, oneLine(request))
		if err != nil || got.status != http.StatusOK {
			return got, err
		}
		page, _ := got.tree.(map[string]any)
		items, _ := page["Items"].([]any)
		count, _ := page["Count"].(json.Number)
		scanned, _ := page["ScannedCount"].(json.Number)
		n, err := count.Int64()
		m, err2 := scanned.Int64()
		if err != nil || err2 != nil {
			return answer{}, fmt.Errorf("a page without counts: %s", oneLine(page))
		}
		all.items, all.count, all.scanned, all.number = append(all.items, items...), all.count+n, all.scanned+m,
			all.number+1
		next, more := page["LastEvaluatedKey"]
		if !more {
			return got, nil
		}
		request["ExclusiveStartKey"] = next
	}
	return answer{}, fmt.Errorf("more than %d pages", pageLimit)
}
