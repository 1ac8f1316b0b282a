package engine

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// Bounds of a transaction.
const (
	maxTransaction      = 100
	maxTransactionBytes = 4 << 20
)

// transactional is how much more a transaction's reads and writes cost: each is done twice, to prepare and to
// commit.
const transactional = 2

// sameItemTwice is the answer to a transaction that has an item twice.
func sameItemTwice() error {
	return exception.Invalid("Transaction request cannot include multiple operations on one item")
}

// transactItems holds that a transaction has actions, and not too many.
func (c *constraints) transactItems(n int, there bool) {
	c.required("transactItems", there)
	if !there {
		return
	}
	shown := "[]"
	if n > 0 {
		shown = fmt.Sprintf("[%d actions]", n) // AWS quotes them all
	}
	c.length("transactItems", shown, n, 1, maxTransaction)
}

// aimAll finds the items of a transaction's n parts, in their order: tableName names a part's table, in which
// aim finds its item. It errs where there is no table, where an item is found twice, and, after all parts,
// where aim did: the transaction is cancelled then.
func (db *DB) aimAll(
	n int, tableName func(i int) string, aim func(i int, t *tableState) (itemID, error),
) error {
	tables := make([]*tableState, n)
	for i := range tables {
		t, err := db.lookup(tableName(i))
		if err != nil {
			return err
		}
		tables[i] = t
	}
	rs := make(reasons, n)
	seen := make(map[itemID]bool, n)
	for i, t := range tables {
		id, err := aim(i, t)
		if ofInput(err) {
			return err
		}
		if err != nil {
			rs[i] = reasonOf(err)
			continue
		}
		if seen[id] {
			return sameItemTwice()
		}
		seen[id] = true
	}
	if rs.any() {
		return rs.cancelled()
	}
	return nil
}
