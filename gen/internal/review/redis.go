package review

import (
	"math"
	"math/bits"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// keyBytes is what Redis takes for a hash beside its key's text: measured on redis-server 7.0.15, 64 bits, as the growth of
// used_memory over 131,072 hashes with balances of 17 digits that expire.
const keyBytes = 160

// textBytes is what Redis keeps around a text: its length, its room, what kind it is, and a zero behind.
const textBytes = 4

// redis prints what there is to say of one resource's hashes and scripts.
func redis(m *markdown, r *model.Resource) {
	m.heading(3, "Redis")
	m.print("\nKeys are `%s<limit>:<kind>-N`.\n", keyStart(r))
	m.table("calls for", "hash tag", "keys:", "commands, if admitted:", "if denied:", "its own bucket's bytes:", "script's bytes:")
	scripts := lua.Scripts(r)
	for _, c := range r.Charged {
		chain := chainOf(r, c)
		kinds := make([]string, len(chain))
		for i, b := range chain {
			kinds[i] = b.Kind.Name
		}
		keys := len(chain) * len(r.Limits)
		number := func(n int) string { return words.Digits(int64(n), ",") }
		script := "`any.lua`"
		if text := scripts[len(chain)-1].Text; text != "" {
			script = number(len(text))
		}
		m.row(words.List(kinds, "and"), "`{"+chain[len(chain)-1].Kind.Prefix+"N}`", number(keys), number(1+3*keys), number(1+keys),
			number(memory(r, c)), script)
	}
	if cascades(r) && r.Cascade != cascadeAtomic {
		m.print("\n- `cascade: compensated` is no other than `atomic` here: one script charges all buckets of a chain, or none.\n")
	}
}

// life is after how many seconds the hash of a limit expires: twice the time that fills it.
func life(n schema.Numbers) int64 {
	const ms = 1000
	rate := float64(n.Refill) / float64(n.Period.Milliseconds())
	return 2 * int64(max(1, math.Ceil(float64(n.Burst)/rate/ms-1e-6)))
}

// memory is how many bytes the hashes of the bucket that an entity of kind c has for r take.
func memory(r *model.Resource, c *model.Charged) int {
	bytes := 0
	for _, l := range r.Limits {
		bytes += keyBytes + allocated(len(key(r, l, c))+typicalID+textBytes)
	}
	return bytes
}

// key is the start of the key of a limit's hash, which the id follows.
func key(r *model.Resource, l *model.Limit, c *model.Charged) string {
	return keyStart(r) + l.Name + ":" + c.Kind.Prefix
}

// keyStart is the start of the keys of all of r's hashes.
func keyStart(r *model.Resource) string { return "sluice:" + r.Name + ":" }

// allocated is what jemalloc takes for so many bytes: multiples of 16 up to 128, then four steps to each power of two.
func allocated(bytes int) int {
	step := 16
	if bytes > 128 {
		step = 1 << (bits.Len(uint(bytes-1)) - 3)
	}
	return (bytes + step - 1) / step * step
}
