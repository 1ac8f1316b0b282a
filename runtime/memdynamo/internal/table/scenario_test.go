package table

import (
	"time"

	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// scenario is a table's life, as data: rapid shrinks it, and the negative controls run it on a broken table.
type scenario struct {
	Def    Def
	Shards int
	Steps  []step
}

// step is one thing that happens to a table: what Do names, with the fields that it takes.
type step struct {
	Do      string
	Item    value.Map
	Service bool
	For     time.Duration
	Index   string
	Range   Range
	Limit   int
	Text    string // a stream's view, or the attribute of expiries
}

func number(text string) value.Number {
	n, err := value.ParseNumber(text)
	if err != nil {
		panic(err)
	}
	return n
}

// values are some of each kind, near to each other and at the ends.
func values(kind value.Kind) []value.Value {
	switch kind {
	case value.KindN:
		return []value.Value{
			number("-9.9e125"), number("-1.25"), number("-1.2"), number("-1e-130"), number("0"), number("2"),
			number("10"),
			number("1.2e2"),
		}
	case value.KindB:
		return []value.Value{
			value.Binary("\x00"), value.Binary("\x00\x00"), value.Binary("a"), value.Binary("a\xff"),
			value.Binary("\xff"),
			value.Binary("\xff\xff"),
		}
	default:
		return []value.Value{
			value.String("a"), value.String("a\x00"), value.String("ab"), value.String("b"), value.String("é"),
			value.String("\U0010ffff"),
		}
	}
}

func drawValue(t *rapid.T, kind value.Kind, name string) value.Value {
	return rapid.SampledFrom(values(kind)).Draw(t, name)
}

// drawHash draws out of fewer, so that partitions fill.
func drawHash(t *rapid.T, kind value.Kind, name string) value.Value {
	return rapid.SampledFrom(values(kind)[3:6]).Draw(t, name)
}

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func drawDef(t *rapid.T) Def {
	kinds := rapid.SampledFrom([]value.Kind{value.KindS, value.KindN, value.KindB})
	def := Def{Name: "t", Key: KeySchema{Hash: Attribute{"h", kinds.Draw(t, "hash")}}}
	g := Attribute{"g", kinds.Draw(t, "g")}
	x := Attribute{"x", kinds.Draw(t, "x")}
	def.Indexes = []IndexDef{
		{Name: "both", Key: KeySchema{g, x}, Projection: Projection{Type: "INCLUDE", NonKey: []string{"v"}}},
		{Name: "hash", Key: KeySchema{Hash: x}, Projection: Projection{Type: "KEYS_ONLY"}},
	}
	if rapid.Bool().Draw(t, "sorted") {
		def.Key.Sort = Attribute{"r", kinds.Draw(t, "sort")}
		local := IndexDef{Name: "local", Key: KeySchema{def.Key.Hash, g}, Projection: Projection{Type: "ALL"},
			Local: true}
		def.Indexes = append(def.Indexes, local)
	}
	return def
}

// drawKeys returns the table's key attributes, and the indexes'.
func drawKeys(t *rapid.T, def Def) value.Map {
	g, x := def.Indexes[0].Key.Hash, def.Indexes[0].Key.Sort
	item := value.Map{
		"h": drawHash(t, def.Key.Hash.Kind, "h"), g.Name: drawHash(t, g.Kind, "g"),
		x.Name: drawHash(t, x.Kind, "x"),
	}
	if def.Key.Sort.Name != "" {
		item[def.Key.Sort.Name] = drawValue(t, def.Key.Sort.Kind, "r")
	}
	return item
}

func drawItem(t *rapid.T, def Def) value.Map {
	item := drawKeys(t, def)
	for _, name := range []string{"g", "x"} {
		switch rapid.IntRange(0, 5).Draw(t, name+"?") {
		case 0:
			delete(item, name)
		case 1:
			item[name] = value.Bool(true)
		}
	}
	if rapid.Bool().Draw(t, "v?") {
		item["v"] = drawValue(t, value.KindS, "v")
		item["w"] = drawValue(t, value.KindN, "w")
	}
	if rapid.Bool().Draw(t, "ttl?") {
		five := start.AddDate(-5, 0, 0).Unix()
		offset := rapid.Int64Range(-3, 10).Draw(t, "ttl")
		item["ttl"] = value.NumberOf(rapid.SampledFrom([]int64{start.Unix(), five}).Draw(t, "year") + offset)
	} else {
		item["ttl"] = drawValue(t, value.KindS, "no ttl")
	}
	return item
}

func drawRange(t *rapid.T, def Def, schema KeySchema) Range {
	r := Range{Reverse: rapid.Bool().Draw(t, "reverse")}
	if rapid.Bool().Draw(t, "query") {
		r.Hash = drawHash(t, schema.Hash.Kind, "hash")
		for _, end := range []**Bound{&r.From, &r.To} {
			if schema.Sort.Name != "" && rapid.Bool().Draw(t, "bounded") {
				*end = &Bound{drawValue(t, schema.Sort.Kind, "bound"), rapid.Bool().Draw(t, "exclusive")}
			}
		}
	} else if r.Segments = rapid.IntRange(0, 4).Draw(t, "segments"); r.Segments > 0 {
		r.Segment = rapid.IntRange(0, r.Segments-1).Draw(t, "segment")
	}
	if rapid.Bool().Draw(t, "after?") {
		r.After = drawKeys(t, def)
	}
	return r
}

func scenarios() *rapid.Generator[scenario] {
	return rapid.Custom(func(t *rapid.T) scenario {
		s := scenario{Def: drawDef(t), Shards: rapid.IntRange(1, 3).Draw(t, "shards")}
		steps := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step { return drawStep(t, s.Def) }), 0, 30)
		for range 10 { // rapid's slices are short
			s.Steps = append(s.Steps, steps.Draw(t, "steps")...)
		}
		return s
	})
}

func drawStep(t *rapid.T, def Def) step {
	p := step{Do: rapid.SampledFrom([]string{
		"put", "put", "put", "put", "put", "delete", "delete", "again", "sleep", "sleep", "read", "read", "read",
		"read",
		"past", "stream", "disable", "split", "trim", "expire",
	}).Draw(t, "do")}
	switch p.Do {
	case "put", "delete", "again":
		p.Item, p.Service = drawItem(t, def), rapid.Bool().Draw(t, "service")
		p.Limit = rapid.IntRange(0, 10).Draw(t, "which")
	case "sleep", "past", "trim":
		p.For = drawFor(t)
	case "read":
		p.Index = rapid.SampledFrom(viewsOf(def)).Draw(t, "index")
		p.Range = drawRange(t, def, (&model{def: def}).schema(p.Index))
		p.Limit = rapid.IntRange(0, 10).Draw(t, "limit")
		p.For = drawFor(t)
	case "stream":
		p.Text = rapid.SampledFrom([]string{"KEYS_ONLY", "NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES"}).Draw(t,
			"view")
	case "expire":
		p.Text = rapid.SampledFrom([]string{"", "ttl", "g"}).Draw(t, "attribute")
	}
	return p
}

func drawFor(t *rapid.T) time.Duration {
	return time.Duration(rapid.IntRange(0, 10).Draw(t, "for")) * 500 * time.Millisecond
}

// viewsOf returns the names that View takes.
func viewsOf(def Def) []string {
	names := []string{""}
	for _, d := range def.Indexes {
		names = append(names, d.Name)
	}
	return names
}
