package table

import (
	"fmt"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

const many = 100_000

// loaded returns a table of many items and two global indexes.
func loaded() (*Table, []Key) {
	def := orders
	def.Indexes = def.Indexes[:2]
	table := New(def)
	keys := make([]Key, many)
	for i := range keys {
		keys[i] = table.KeyOf(bought(i))
		table.Set(Change{At: start, Key: keys[i], Item: bought(i)})
	}
	return table, keys
}

func bought(i int) value.Map { return order(fmt.Sprint("user", i%1000), i) }

func BenchmarkGet(b *testing.B) {
	table, keys := loaded()
	for i := 0; b.Loop(); i++ {
		if table.Get(keys[i*7919%many]) == nil {
			b.Fatal("no item")
		}
	}
}

func BenchmarkSet(b *testing.B) {
	for _, past := range []time.Duration{0, time.Second} {
		b.Run(fmt.Sprint("past=", past), func(b *testing.B) {
			table, keys := loaded()
			table.KeepPast(past, start)
			for i := 0; b.Loop(); i++ {
				n := i * 7919 % many
				item := bought(n)
				item["price"] = value.NumberOf(int64(i)) // moves in an index
				table.Set(Change{At: start.Add(time.Duration(i) * time.Millisecond), Key: keys[n], Item: item})
			}
		})
	}
}

func BenchmarkQuery(b *testing.B) {
	table, _ := loaded()
	view := table.View("", time.Time{})
	for i := 0; b.Loop(); i++ {
		items := 0
		for range view.Items(Range{Hash: value.String(fmt.Sprint("user", i%1000))}) {
			items++
		}
		if items != many/1000 {
			b.Fatal(items)
		}
	}
}
