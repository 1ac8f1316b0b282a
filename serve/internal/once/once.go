// Package once remembers the leases of acquires with an Idempotency-Key, so that a repeated acquire gets the
// same ones.
package once

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"sync"
	"time"
)

// Remembered is how long the leases of a key are remembered.
const Remembered = 10 * time.Minute

// Why an acquire with a key fails. Nothing was charged.
var (
	ErrOther = errors.New("the key has been used for another request")
	ErrFull  = errors.New("too many keys are remembered")
)

// Result is the numbers of an acquire's leases: the first one, and how many there are.
type Result struct {
	First uint64
	Count int
}

// Keys remembers results by key. It is safe for concurrent use.
type Keys struct {
	most int

	mu    sync.Mutex
	known map[digest]*result
	order []expiring // oldest first
}

type digest [16]byte

type result struct {
	Result

	request digest
	ended   chan struct{} // is closed when the acquire has; nil once Result is set
}

type expiring struct {
	key digest
	at  int64 // s
}

// New returns Keys that remembers so many results.
func New(most int) *Keys { return &Keys{most: most, known: map[digest]*result{}} }

// digestOf returns a digest of parts: no other parts with the same one can be found.
func digestOf(parts ...[]byte) digest {
	h := sha256.New()
	for _, p := range parts {
		sum := sha256.Sum256(p)
		h.Write(sum[:])
	}
	return digest(h.Sum(nil))
}

// Do calls acquire, unless an acquire with the same key has succeeded in the last ten minutes: then it
// returns the result of that, and repeated is true. It waits for one that is under way. Keys of different
// callers are different. Do fails with
//   - acquire's error;
//   - ErrOther if the key was used for another request;
//   - ErrFull;
//   - ctx's error.
func (k *Keys) Do(
	ctx context.Context, caller, key string, request []byte, acquire func() (Result, error),
) (got Result, repeated bool, err error) {
	of, asked := digestOf([]byte(caller), []byte(key)), digestOf(request)
	for {
		own, known, err := k.begin(of, asked)
		if err != nil {
			return Result{}, false, err
		}
		if own != nil {
			return k.run(of, own, acquire)
		}
		if known.ended == nil {
			return known.Result, true, nil
		}
		select {
		case <-known.ended: // it may have failed
		case <-ctx.Done():
			return Result{}, false, ctx.Err()
		}
	}
}

// begin returns what is known of a key. If that is nothing, it returns a result of its own, for run.
func (k *Keys) begin(key, request digest) (own *result, known result, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.expire(time.Now().Unix())
	switch found := k.known[key]; {
	case found != nil && found.request != request:
		return nil, result{}, ErrOther
	case found != nil:
		return nil, *found, nil
	case len(k.known) >= k.most:
		return nil, result{}, ErrFull
	}
	own = &result{request: request, ended: make(chan struct{})}
	k.known[key] = own
	return own, result{}, nil
}

// run calls acquire, and remembers its result if it succeeds.
func (k *Keys) run(key digest, own *result, acquire func() (Result, error)) (got Result, _ bool, err error) {
	succeeded := false
	defer func() { // after a panic, too
		k.mu.Lock()
		defer k.mu.Unlock()
		close(own.ended)
		if own.ended = nil; !succeeded {
			delete(k.known, key)
			return
		}
		own.Result = got
		k.order = append(k.order, expiring{key, time.Now().Add(Remembered).Unix()})
	}()
	got, err = acquire()
	succeeded = err == nil
	return got, false, err
}

// expire forgets what is too old at now, in s. The caller has locked k.
func (k *Keys) expire(now int64) {
	n := 0
	for n < len(k.order) && k.order[n].at < now {
		delete(k.known, k.order[n].key)
		n++
	}
	if k.order = k.order[n:]; n > 0 && len(k.order) < cap(k.order)/4 {
		k.order = slices.Clone(k.order)
	}
}
