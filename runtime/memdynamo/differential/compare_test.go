package differential_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aymanbagabas/go-udiff"
)

// difference tells how the replies to an operation differ: "" if they do not.
func difference(o operation, truth, ours []reply) string {
	want, got := indented(canonical(o, truth)), indented(canonical(o, ours))
	if want == got {
		return ""
	}
	return shorten(udiff.Unified("DynamoDB Local", "memdynamo", want, got))
}

// places returns a line for each value in which the replies to an operation differ: the operation, the path
// to the value, and both values, as in
//
//	UpdateItem 0.Body.Attributes.c.N: "3" | "-3"
//
// A value that is not there is null.
func places(o operation, truth, ours []reply) (lines []string) {
	var walk func(path string, want, got any)
	walk = func(path string, want, got any) {
		a, b := members(want), members(got)
		if a == nil || b == nil {
			if a, b := textOf(want), textOf(got); a != b {
				lines = append(lines, shorten(fmt.Sprintf("%s: %s | %s", path, a, b)))
			}
			return
		}
		both := maps.Clone(a)
		maps.Copy(both, b)
		for _, name := range slices.Sorted(maps.Keys(both)) {
			walk(strings.TrimPrefix(path+"."+name, "."), a[name], b[name])
		}
	}
	walk("", decoded(canonical(o, truth)), decoded(canonical(o, ours)))
	for i := range lines {
		lines[i] = o.kind() + " " + lines[i]
	}
	return lines
}

// decoded is v as JSON has it.
func decoded(v any) (as any) {
	if err := json.Unmarshal([]byte(textOf(v)), &as); err != nil {
		return err.Error()
	}
	return as
}

// members returns the values inside of v, decoded JSON, by name or index: nil if v is none that has values
// inside. An item that is JSON in a string, as in a rank, is decoded.
func members(v any) map[string]any {
	switch v := v.(type) {
	case map[string]any:
		return v
	case []any:
		all := make(map[string]any, len(v))
		for i, part := range v {
			all[strconv.Itoa(i)] = part
		}
		return all
	case string:
		var item map[string]any
		if json.Unmarshal([]byte(v), &item) == nil {
			return item
		}
	}
	return nil
}

func indented(v any) string {
	var b bytes.Buffer
	if err := json.Indent(&b, []byte(textOf(v)), "", " "); err != nil {
		return err.Error()
	}
	return b.String() + "\n"
}

// canonical is the replies without what DynamoDB leaves open: the order of a batch's items, of partitions in
// a scan, and of items of an index with equal keys.
func canonical(o operation, replies []reply) any {
	if slices.ContainsFunc(replies, func(r reply) bool { return r.Code != "" }) {
		return replies
	}
	switch in := o.input.(type) {
	case *dynamodb.ScanInput:
		return collect(o, indexOf(in.TableName, in.IndexName), replies)
	case *dynamodb.QueryInput:
		if in.IndexName != nil {
			return collect(o, indexOf(in.TableName, in.IndexName), replies)
		}
	case *dynamodb.BatchGetItemInput:
		for _, r := range replies {
			tables, _ := r.Body["Responses"].(map[string]any)
			for _, items := range tables {
				sortList(items)
			}
		}
	}
	for _, r := range replies {
		sortByTable(r.Body["ConsumedCapacity"])
	}
	return replies
}

// sortList sorts v if it is a list.
func sortList(v any) {
	if list, ok := v.([]any); ok {
		sortAny(list)
	}
}

// sortByTable sorts v if it is the capacity consumed of several tables.
func sortByTable(v any) {
	list, _ := v.([]any)
	name := func(v any) string {
		consumed, _ := v.(map[string]any)
		return fmt.Sprint(consumed["TableName"])
	}
	slices.SortFunc(list, func(a, b any) int { return cmp.Compare(name(a), name(b)) })
}

// whole is the pages of a read as one.
type whole struct {
	Pages          int // 0 in a parallel scan: segments are cut as the engine likes
	Count, Scanned float64
	Partitions     [][]rank // sorted: their order means nothing
	Cut            bool     // it was not read to its end
	Capacity       any      // nil of several pages: what fills up one page depends on the order of partitions
}

// rank is items with the same sort key.
type rank struct {
	Sort  string
	Items []string
}

func collect(o operation, x index, pages []reply) whole {
	w := whole{Pages: len(pages)}
	if o.segments > 0 {
		w.Pages = 0
	}
	partitions := map[string][]rank{}
	for _, page := range pages {
		count, _ := page.Body["Count"].(float64)
		scanned, _ := page.Body["ScannedCount"].(float64)
		w.Count, w.Scanned = w.Count+count, w.Scanned+scanned
		_, w.Cut = page.Body["LastEvaluatedKey"]
		items, _ := page.Body["Items"].([]any)
		for _, item := range items {
			var hash, sort string
			if o.segments == 0 || x.name == "" { // how a scan cuts up an index is the engine's own
				hash, sort = keysOf(x, item)
			}
			ranks := partitions[hash]
			if len(ranks) == 0 || ranks[len(ranks)-1].Sort != sort {
				ranks = append(ranks, rank{Sort: sort})
			}
			last := &ranks[len(ranks)-1]
			last.Items = append(last.Items, textOf(item))
			partitions[hash] = ranks
		}
	}
	for _, ranks := range partitions {
		for _, r := range ranks {
			slices.Sort(r.Items)
		}
		w.Partitions = append(w.Partitions, ranks)
	}
	slices.SortFunc(w.Partitions, func(a, b []rank) int {
		return slices.CompareFunc(a, b, func(a, b rank) int {
			return cmp.Or(cmp.Compare(a.Sort, b.Sort), slices.Compare(a.Items, b.Items))
		})
	})
	if len(pages) == 1 && o.segments == 0 {
		w.Capacity = pages[0].Body["ConsumedCapacity"]
	}
	return w
}

// keysOf returns the item's keys in the index as text. If a projection leaves out a key attribute, all items
// get the same rank, since their order cannot be checked.
func keysOf(x index, item any) (hash, sort string) {
	attributes, _ := item.(map[string]any)
	for _, name := range x.names() {
		if attributes[name] == nil {
			return "", ""
		}
	}
	return textOf(attributes[x.hash.name]), textOf(attributes[x.sort.name])
}

// indexOf finds an index, or the table itself, by names that an operation was accepted with.
func indexOf(table, name *string) index {
	for _, s := range schemas {
		for _, x := range s.indexes {
			if table != nil && s.name == *table && (x.name == "" && name == nil || name != nil && x.name == *name) {
				return x
			}
		}
	}
	return index{}
}
