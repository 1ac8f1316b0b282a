package review

import (
	"fmt"
	"math"
	"math/bits"
	"strings"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// keyBytes is the memory of a hash without its key's text. It was measured on redis-server 7.0.15, 64 bits,
// as the growth of used_memory over 131,072 hashes with balances of 17 digits that expire.
const keyBytes = 160

// textBytes is the overhead of a text: its length, its capacity, its type and a closing zero.
const textBytes = 4

// redis prints the keys of one resource's hashes, and the cost of its calls.
func redis(m *markdown, r *model.Resource) {
	m.heading(3, "Redis")
	m.print("\nKeys are `%s<limit>:<kind>-N`%s.\n", keyStart(r), nameKeys(r))
	m.table("calls for", "hash tag", "keys:", "commands, if admitted:", "if denied:", "its own bucket's bytes:",
		"script's bytes:")
	scripts := lua.Scripts(r)
	for _, c := range r.Charged {
		chain := chainOf(r, c)
		kinds := make([]string, len(chain))
		for i, b := range chain {
			kinds[i] = bucketOf(b)
		}
		keys := 0
		for _, b := range chain {
			keys += held(r, b)
		}
		number := func(n int) string { return words.Digits(int64(n), ",") }
		script := "`any.lua`"
		switch {
		case r.Holds:
			script = "`holds.lua`"
		case r.Windows != "", r.OnPlans:
			script = "`windows.lua`"
		}
		if text := scripts[len(chain)-1].Text; text != "" {
			script = number(len(text))
		}
		m.row(words.List(kinds, "and"), "`{"+chain[len(chain)-1].Kind.Prefix+"N}`", number(keys), number(1+3*keys),
			number(1+keys),
			number(memory(r, c.Buckets)), script)
	}
	if cascades(r) && r.Cascade != cascadeAtomic {
		m.print("\n- `cascade: compensated` is no other than `atomic` here: one script charges all buckets of a " +
			"chain, or none.\n")
	}
}

// nameKeys says which keys have a name, "" for a resource without names.
func nameKeys(r *model.Resource) string {
	if !named(r) {
		return ""
	}
	start := strings.TrimSuffix(keyStart(r), ":")
	return fmt.Sprintf(", and of one name `%s/<name>:<limit>:<kind>-N`", start)
}

// held returns how many limits of r the buckets of c hold.
func held(r *model.Resource, c *model.Charged) int {
	n := 0
	for _, l := range r.Limits {
		if c.Has(l) {
			n++
		}
	}
	return n
}

// lifeOf returns in words when an idle hash expires.
func lifeOf(n schema.Numbers, w *window.Window) string {
	switch {
	case n.InFlight():
		return "2 to 3 min"
	case w == nil:
		return words.Digits(life(n), ",") + " s"
	case w.Unit == window.FirstUse:
		return "its window, and 1 min"
	case w.Unit == window.Never:
		return "does not expire"
	}
	return "its window, and half of one"
}

// life returns the seconds after which an idle hash expires: twice the time that fills it.
func life(n schema.Numbers) int64 {
	const ms = 1000
	rate := float64(n.Refill) / float64(n.Period.Milliseconds())
	return 2 * int64(max(1, math.Ceil(float64(n.Burst)/rate/ms-1e-6)))
}

// memory returns the bytes of all hashes of buckets of r, which one entity has.
func memory(r *model.Resource, buckets []*model.Charged) (bytes int) {
	for _, c := range buckets {
		bytes += memoryOf(r, c)
	}
	return bytes
}

// memoryOf returns the bytes of all hashes of one bucket of r.
func memoryOf(r *model.Resource, c *model.Charged) (bytes int) {
	for _, l := range r.Limits {
		if !c.Has(l) {
			continue
		}
		name := 0
		if r.Template != nil && !c.AllNames {
			name = len("/") + typicalName
		}
		bytes += keyBytes + allocated(len(key(r, l, c))+name+typicalID+textBytes)
	}
	return bytes
}

// key is the start of the key of a limit's hash, which the id follows.
func key(r *model.Resource, l *model.Limit, c *model.Charged) string {
	return keyStart(r) + l.Name + ":" + c.Kind.Prefix
}

// keyStart is the start of the keys of all of r's hashes, in which a ':' of its name is %3A.
func keyStart(r *model.Resource) string {
	return "sluice:" + strings.ReplaceAll(r.Name, ":", "%3A") + ":"
}

// allocated returns what jemalloc takes for that many bytes: multiples of 16 up to 128, then four steps to
// each power of two.
func allocated(bytes int) int {
	step := 16
	if bytes > 128 {
		step = 1 << (bits.Len(uint(bytes-1)) - 3)
	}
	return (bytes + step - 1) / step * step
}
