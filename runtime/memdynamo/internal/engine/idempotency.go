package engine

import (
	"crypto/sha256"
	"encoding/json"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// tokenLife is how long a ClientRequestToken stands for its transaction, once that is applied.
const tokenLife = 10 * time.Minute

// digest stands for the parameters of a transaction.
type digest [sha256.Size]byte

// digestOf returns the digest of a transaction's items. Clients write maps in any order: encoding/json sorts
// them.
func digestOf(items []*transactWriteItem) (digest, error) {
	canonical, err := json.Marshal(items)
	if err != nil {
		return digest{}, err
	}
	return sha256.Sum256(canonical), nil
}

// tokens are the ClientRequestTokens of the transactions that are under way, or were applied of late. One
// that was cancelled leaves no token: it can be tried again.
type tokens struct {
	uses    map[string]*tokenUse
	applied []*tokenUse // in the order of time
}

// tokenUse is what a token was used for.
type tokenUse struct {
	token      string
	parameters digest
	at         time.Time // when it was applied; zero while it is under way
}

func newTokens() tokens { return tokens{uses: map[string]*tokenUse{}} }

// begin notes that a transaction is under way. If the token has been used for it already, replay is true: it
// must not be applied again.
func (t *tokens) begin(
	now time.Time, token string, parameters digest,
) (use *tokenUse, replay bool, err error) {
	t.expire(now)
	switch use := t.uses[token]; {
	case use == nil:
		use = &tokenUse{token: token, parameters: parameters}
		t.uses[token] = use
		return use, false, nil
	case use.parameters != parameters:
		return nil, false, exception.New(exception.IdempotentMismatch,
			"DynamoDB rejected the request because you retried a request "+
				"with a different payload but with an idempotent token that was already used.")
	case use.at.IsZero():
		return nil, false, exception.New(exception.TransactionInProgress,
			"The transaction with the given request token is already in progress.")
	default:
		return use, true, nil
	}
}

// end notes that the transaction was applied, or that it was not.
func (t *tokens) end(now time.Time, use *tokenUse, applied bool) {
	if !applied {
		delete(t.uses, use.token)
		return
	}
	use.at = now
	t.applied = append(t.applied, use)
}

// expire forgets the tokens whose time is over.
func (t *tokens) expire(now time.Time) {
	n := 0
	for n < len(t.applied) && now.Sub(t.applied[n].at) >= tokenLife {
		delete(t.uses, t.applied[n].token)
		n++
	}
	t.applied = t.applied[n:]
}
