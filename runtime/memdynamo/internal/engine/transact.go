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
