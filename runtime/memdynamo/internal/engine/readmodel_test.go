package engine_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// row is an item of the indexed table, as the model has it. Empty texts and zero numbers are not there.
type row struct {
	pk, g, l string
	sk, a, b int
}

func (r row) json() string {
	attributes := []string{fmt.Sprintf(`"pk":{"S":%q}`, r.pk), fmt.Sprintf(`"sk":{"N":"%d"}`, r.sk)}
	for name, v := range map[string]string{"g": r.g, "l": r.l} {
		if v != "" {
			attributes = append(attributes, fmt.Sprintf(`%q:{"S":%q}`, name, v))
		}
	}
	for name, v := range map[string]int{"a": r.a, "b": r.b} {
		if v != 0 {
			attributes = append(attributes, fmt.Sprintf(`%q:{"N":"%d"}`, name, v))
		}
	}
	slices.Sort(attributes)
	return "{" + strings.Join(attributes, ",") + "}"
}

// source is the table or one of its indexes: what reads of it may ask and return.
type source struct {
	index     string
	hash      func(row) string
	sort      func(row) string // ordered as the sort key is; nil: none
	sortValue func(int) string // the i-th sort key, as JSON
	hashName  string
	sortName  string
	projects  func(row) row // what it holds
	filter    string        // an attribute to filter by
	filtered  func(row) int
}

func number(i int) string { return fmt.Sprintf("%04d", i+1000) }

var sources = []source{
	{
		hash: func(r row) string { return r.pk }, sort: func(r row) string { return number(r.sk) },
		hashName: "pk", sortName: "sk", projects: func(r row) row { return r },
		filter: "b", filtered: func(r row) int { return r.b },
		sortValue: func(i int) string { return fmt.Sprintf(`{"N":"%d"}`, i-3) },
	},
	{
		index: "keys", hash: func(r row) string { return r.g }, hashName: "g",
		projects: func(r row) row { return row{pk: r.pk, sk: r.sk, g: r.g} },
		filter:   "sk", filtered: func(r row) int { return r.sk },
	},
	{
		index: "all", hash: func(r row) string { return r.g }, sort: func(r row) string { return number(r.sk) },
		hashName: "g", sortName: "sk", projects: func(r row) row { return r },
		filter: "b", filtered: func(r row) int { return r.b },
		sortValue: func(i int) string { return fmt.Sprintf(`{"N":"%d"}`, i-3) },
	},
	{
		index: "local", hash: func(r row) string {
			if r.l == "" {
				return ""
			}
			return r.pk
		},
		sort: func(r row) string { return r.l }, hashName: "pk", sortName: "l",
		projects: func(r row) row { return row{pk: r.pk, sk: r.sk, l: r.l, a: r.a} },
		filter:   "a", filtered: func(r row) int { return r.a },
		sortValue: func(i int) string { return fmt.Sprintf(`{"S":"l%d"}`, i%4) },
	},
}

// sortText is what the model compares of a sort value.
func (s source) sortText(i int) string {
	if s.sortName == "l" {
		return fmt.Sprint("l", i%4)
	}
	return number(i - 3)
}

// question is a Query, or a Scan if its hash is empty.
type question struct {
	source
	hashIs   string
	op       string // of the sort key: "", =, <, <=, >, >=, BETWEEN or begins_with
	from, to int
	reverse  bool
	filters  bool // the filter attribute is greater than least
	least    int
	projects bool // to sk and the filter attribute
	limit    int
	segment  int
	segments int
}

// selects is the model: whether a row is in the answer but for the filter.
func (q question) selects(r row) bool {
	if q.hashIs == "" {
		return q.hash(r) != ""
	}
	if q.hash(r) != q.hashIs {
		return false
	}
	if q.op == "" {
		return true
	}
	at := cmp.Compare(q.sort(r), q.sortText(q.from))
	switch q.op {
	case "=":
		return at == 0
	case "<":
		return at < 0
	case "<=":
		return at <= 0
	case ">":
		return at > 0
	case ">=":
		return at >= 0
	case "BETWEEN":
		return at >= 0 && q.sort(r) <= q.sortText(q.to)
	default:
		return strings.HasPrefix(q.sort(r), q.sortText(q.from)[:1])
	}
}

func (q question) lets(r row) bool {
	return !q.filters || q.filtered(r) != 0 && q.filtered(r) > q.least
}

// shown is what the answer has of a row.
func (q question) shown(r row) row {
	if !q.projects {
		return q.source.projects(r)
	}
	return row{pk: r.pk, sk: r.sk}
}

// input returns the request.
func (q question) input(after json.RawMessage) (operation, input string) {
	in := map[string]any{"TableName": "indexed"}
	values := map[string]json.RawMessage{}
	if q.index != "" {
		in["IndexName"] = q.index
	}
	if operation = "Scan"; q.hashIs != "" {
		operation = "Query"
		condition := q.hashName + " = :h"
		values[":h"] = json.RawMessage(fmt.Sprintf(`{"S":%q}`, q.hashIs))
		if q.op != "" {
			values[":x"] = json.RawMessage(q.sortValue(q.from))
		}
		switch q.op {
		case "":
		case "BETWEEN":
			condition += " AND " + q.sortName + " BETWEEN :x AND :y"
			values[":y"] = json.RawMessage(q.sortValue(q.to))
		case "begins_with":
			condition += " AND begins_with(" + q.sortName + ", :x)"
			values[":x"] = json.RawMessage(fmt.Sprintf(`{"S":%q}`, q.sortText(q.from)[:1]))
		default:
			condition += " AND " + q.sortName + " " + q.op + " :x"
		}
		in["KeyConditionExpression"] = condition
		in["ScanIndexForward"] = !q.reverse
	}
	if q.filters {
		in["FilterExpression"] = q.filter + " > :f"
		values[":f"] = json.RawMessage(fmt.Sprintf(`{"N":"%d"}`, q.least))
	}
	if len(values) > 0 {
		in["ExpressionAttributeValues"] = values
	}
	if q.projects {
		in["ProjectionExpression"] = "pk, sk"
	}
	if q.limit > 0 {
		in["Limit"] = q.limit
	}
	if q.segments > 0 {
		in["Segment"], in["TotalSegments"] = q.segment, q.segments
	}
	if after != nil {
		in["ExclusiveStartKey"] = after
	}
	text, err := json.Marshal(in)
	if err != nil {
		panic(err)
	}
	return operation, string(text)
}

// answer asks until there are no more pages, and returns all items. A page must keep the limit.
func (q question) answer(r *rig) ([]string, error) {
	var items []string
	var after json.RawMessage
	for range 1000 {
		operation, input := q.input(after)
		page := parse[struct {
			Items               []json.RawMessage
			Count, ScannedCount int
			LastEvaluatedKey    json.RawMessage
		}](r.do(operation, input))
		if page.Count != len(page.Items) || page.ScannedCount < page.Count || q.limit > 0 &&
			page.ScannedCount > q.limit {
			return nil, fmt.Errorf("%s: %d items, Count %d, ScannedCount %d", input, len(page.Items), page.Count,
				page.ScannedCount)
		}
		if q.limit > 0 && (page.LastEvaluatedKey != nil) != (page.ScannedCount == q.limit) {
			return nil, fmt.Errorf("%s: ScannedCount %d, LastEvaluatedKey %s", input, page.ScannedCount,
				page.LastEvaluatedKey)
		}
		for _, item := range page.Items {
			items = append(items, string(item))
		}
		if after = page.LastEvaluatedKey; after == nil {
			return items, nil
		}
	}
	return nil, fmt.Errorf("no end of pages")
}

// check errs unless the engine's answer is the model's.
func (q question) check(r *rig, rows []row, selects func(question, row) bool) error {
	got, err := q.answer(r)
	if err != nil {
		return err
	}
	var want []row
	for _, row := range rows {
		if selects(q, row) && q.lets(row) {
			want = append(want, row)
		}
	}
	var texts []string
	for _, row := range want {
		texts = append(texts, q.shown(row).json())
	}
	_, input := q.input(nil)
	if sorted := slices.Sorted(slices.Values(got)); !slices.Equal(sorted, slices.Sorted(slices.Values(texts))) {
		return fmt.Errorf("%s: got %s, want %s", input, got, texts)
	}
	if q.hashIs == "" || q.sort == nil {
		return nil
	}
	// Rows with one sort key have no order that is promised.
	sorts := map[string]string{}
	for _, row := range want {
		sorts[q.shown(row).json()] = q.sort(row)
	}
	order := func(a, b string) int { return cmp.Compare(sorts[a], sorts[b]) }
	if q.reverse {
		order = func(a, b string) int { return cmp.Compare(sorts[b], sorts[a]) }
	}
	if !slices.IsSortedFunc(got, order) {
		return fmt.Errorf("%s: not in order: %s", input, got)
	}
	return nil
}

// drawRows puts random items into the indexed table.
func drawRows(t *rapid.T, r *rig) []row {
	rows := map[[2]string]row{}
	texts := func(letter string) *rapid.Generator[string] {
		return rapid.SampledFrom([]string{"", letter + "0", letter + "1", letter + "2", letter + "3"})
	}
	for range rapid.IntRange(0, 40).Draw(t, "items") {
		item := row{
			pk: rapid.SampledFrom([]string{"p0", "p1", "p2", "p3", "p4"}).Draw(t, "pk"),
			sk: rapid.IntRange(-3, 8).Draw(t, "sk"),
			g:  texts("g").Draw(t, "g"), l: texts("l").Draw(t, "l"),
			a: rapid.IntRange(0, 3).Draw(t, "a"), b: rapid.IntRange(0, 3).Draw(t, "b"),
		}
		rows[[2]string{item.pk, fmt.Sprint(item.sk)}] = item
		r.do("PutItem", `{"TableName":"indexed","Item":`+item.json()+`}`)
	}
	for key := range rows {
		if key[0] == "p4" { // and takes some out again
			r.do("DeleteItem", fmt.Sprintf(`{"TableName":"indexed","Key":{"pk":{"S":%q},"sk":{"N":%q}}}`, key[0],
				key[1]))
			delete(rows, key)
		}
	}
	return slices.Collect(maps.Values(rows))
}

func drawQuestion(t *rapid.T) question {
	q := question{source: rapid.SampledFrom(sources).Draw(t, "source")}
	if rapid.Bool().Draw(t, "query") {
		q.hashIs = rapid.SampledFrom([]string{"0", "1", "2", "9"}).Draw(t, "hash")
		q.hashIs = q.hashName[:1] + q.hashIs
		if q.sort != nil {
			ops := []string{"", "=", "<", "<=", ">", ">=", "BETWEEN"}
			if q.sortName == "l" {
				ops = append(ops, "begins_with")
			}
			q.op = rapid.SampledFrom(ops).Draw(t, "op")
			q.from, q.to = rapid.IntRange(0, 11).Draw(t, "from"), rapid.IntRange(0, 11).Draw(t, "to")
			if q.op == "BETWEEN" && q.sortText(q.from) > q.sortText(q.to) {
				q.from, q.to = q.to, q.from
			}
		}
		q.reverse = rapid.Bool().Draw(t, "reverse")
	}
	q.filters = rapid.Bool().Draw(t, "filters")
	if q.filters && q.filter == "sk" {
		q.filters = false // sk of 0 is there, unlike all else that is 0
	}
	q.least = rapid.IntRange(0, 3).Draw(t, "least")
	q.projects = rapid.Bool().Draw(t, "projects")
	q.limit = rapid.IntRange(0, 5).Draw(t, "limit")
	return q
}

func TestReadsAgreeWithModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newTables(t)
		rows := drawRows(rt, r)
		for range 10 {
			q := drawQuestion(rt)
			if err := q.check(r, rows, question.selects); err != nil {
				rt.Fatal(err)
			}
			answer := func(change func(*question)) []string {
				q := q
				change(&q)
				items, err := q.answer(r)
				if err != nil {
					rt.Fatal(err)
				}
				return items
			}
			paged := answer(func(*question) {})
			if whole := answer(func(q *question) { q.limit = 0 }); !slices.Equal(paged, whole) {
				rt.Fatalf("pages of %d: %s, one page: %s", q.limit, paged, whole)
			}
			if q.hashIs != "" {
				reversed := answer(func(q *question) { q.reverse = !q.reverse })
				if slices.Reverse(reversed); !slices.Equal(paged, reversed) {
					rt.Fatalf("reversed: %s, forward: %s", reversed, paged)
				}
				continue
			}
			segments := rapid.IntRange(1, 7).Draw(rt, "segments")
			var parts []string // in the order of the segments that is the whole
			for segment := range segments {
				parts = append(parts, answer(func(q *question) { q.segment, q.segments = segment, segments })...)
			}
			if !slices.Equal(paged, parts) {
				rt.Fatalf("%d segments: %s, whole: %s", segments, parts, paged)
			}
		}
	})
}

// A model that is wrong in one bound is found out.
func TestReadModelControl(t *testing.T) {
	t.Parallel()
	r := newTables(t)
	var rows []row
	for i := range 12 {
		rows = append(rows, row{pk: "p0", sk: i - 3, b: 1})
		r.do("PutItem", `{"TableName":"indexed","Item":`+rows[i].json()+`}`)
	}
	q := question{source: sources[0], hashIs: "p0", op: "<", from: 5, limit: 2}
	if err := q.check(r, rows, question.selects); err != nil {
		t.Fatal(err)
	}
	wrong := func(q question, r row) bool { q.op = "<="; return q.selects(r) }
	if err := q.check(r, rows, wrong); err == nil {
		t.Error("a model that takes < for <= was not found out")
	}
	forgetful := func(q question, r row) bool { return q.selects(r) && r.sk != -3 }
	if err := q.check(r, rows, forgetful); err == nil {
		t.Error("a model that forgets a row was not found out")
	}
}
