package differential_test

import (
	"slices"

	"pgregory.net/rapid"
)

// mix is a sort of history.
type mix struct {
	name    string
	trouble int
	steps   []func(dice) operation // drawn alike: what stands there twice comes twice as often
}

var mixes = []mix{
	{"Items", 1, []func(dice) operation{dice.put, dice.put, dice.update, dice.update, dice.update, dice.remove,
		dice.get}},
	{"Transactions", 1, []func(dice) operation{dice.transactWrite, dice.transactWrite,
		dice.batchWrite, dice.batchGet}},
	{"Reads", 1, []func(dice) operation{dice.batchWrite, dice.query, dice.query, dice.query, dice.scan,
		dice.update, dice.batchGet}},
	{"Faults", 4, []func(dice) operation{
		dice.put, dice.update, dice.remove, dice.get, dice.batchWrite, dice.batchGet, dice.transactWrite,
		dice.query, dice.scan,
	}},
}

// groups is of how many parts a history is made. rapid drops elements of slices to shrink, and its slices are
// short.
const groups = 12

// histories draws histories of some sixty operations.
func (m mix) histories() *rapid.Generator[history] {
	step := rapid.Custom(func(t *rapid.T) operation {
		left := 1
		d := dice{t, m.trouble, &left}
		return pick(d, m.steps...)(d)
	})
	group := rapid.SliceOfN(step, 0, 20)
	return rapid.Custom(func(t *rapid.T) history {
		var parts [][]operation
		for range groups {
			parts = append(parts, group.Draw(t, "group"))
		}
		return slices.Concat(parts...)
	})
}
