package engine

// transactions is what the engine knows of its transactions.
type transactions struct {
	held   map[itemID]bool // the items of those that wait to be applied
	tokens tokens
}

func newTransactions() transactions {
	return transactions{held: map[itemID]bool{}, tokens: newTokens()}
}

// conflictText stands in an exception, and in a transaction's reasons.
const conflictText = "Transaction is ongoing for the item"

// hold keeps others off the transaction's items.
func (t *transactions) hold(targets []target) {
	for i := range targets {
		t.held[targets[i].id] = true
	}
}

// release lets others at the transaction's items again.
func (t *transactions) release(targets []target) {
	for i := range targets {
		delete(t.held, targets[i].id)
	}
}

// collides reports which of n items of a transaction are those of another one that holds them, or are said to
// be by chance.
func (db *DB) collides(m moment, n int, item func(i int) itemID) (which []bool, collided bool) {
	which = make([]bool, n)
	for i := range n {
		which[i] = db.transactions.held[item(i)]
		collided = collided || which[i]
	}
	if db.chance(m.Conflict) {
		which[int(db.cfg.Rand()*float64(n))] = true
		collided = true
	}
	return which, collided
}
