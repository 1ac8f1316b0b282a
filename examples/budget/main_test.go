package main

import (
	"context"
	"errors"
	"io"
	"iter"
	"math/big"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/money"

	"github.com/sluice-go/sluice/examples/budget/limits"
)

// biller is a provider that bills each org, in whole trillionths, and rounds each call up to a billionth.
type biller struct {
	random *rand.Rand
	bill   big.Int // nano-units
	most   int64   // tokens of output
}

// stream is a provider. Part of the prompt is cached.
func (b *biller) stream(ctx context.Context, prompt int64) iter.Seq[delta] {
	return func(yield func(delta) bool) {
		used := limits.GPT4Usage{Cached: b.random.Int64N(prompt + 1), Call: 1}
		used.Input = prompt - used.Cached
		for length := b.random.Int64N(b.most) + 1; used.Output < length && ctx.Err() == nil; {
			used.Output += min(length-used.Output, 100)
			if !yield(delta{text: "100 words ", output: used.Output}) {
				return
			}
		}
		picos := new(big.Int)
		for _, part := range [][2]int64{{used.Input, 2_500_000}, {used.Cached, 37_500}, {used.Output, 10_000_000},
			{used.Call, 10_000_000_000}} {
			picos.Add(picos, new(big.Int).Mul(big.NewInt(part[0]), big.NewInt(part[1])))
		}
		nanos, rest := new(big.Int).QuoRem(picos, big.NewInt(1_000), new(big.Int))
		if rest.Sign() > 0 {
			nanos.Add(nanos, big.NewInt(1))
		}
		b.bill.Add(&b.bill, nanos)
		yield(delta{reported: &used})
	}
}

// spent returns what the table has of an org's month.
func spent(t *testing.T, lim *limits.Limiter, org string) money.Amount {
	t.Helper()
	seen, err := lim.GPT4.Peek(t.Context(), limits.Org{ID: org})
	if err != nil {
		t.Fatal(err)
	}
	return seen.Buckets[0].Capacity.Month - seen.Buckets[0].Available.Month
}

// start returns the real limiter, on a DynamoDB in the process.
func start(t *testing.T) *limits.Limiter {
	t.Helper()
	lim, err := limits.New(limittest.Store(t))
	if err != nil {
		t.Fatal(err)
	}
	return lim
}

// TestBill: the table has what the provider bills, to the nano, also of replies that a budget has ended.
func TestBill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := start(t)
		for _, org := range []string{"a", "b"} {
			model := &biller{random: rand.New(rand.NewPCG(1, uint64(org[0]))), most: 9_000}
			g, denied := gateway{lim.GPT4, model.stream}, false
			for i := 0; i < 500 && !denied; i++ {
				key := limits.Key{ID: org, Org: limits.Org{ID: org}}
				err := g.complete(t.Context(), key, 1_000+int64(i), io.Discard)
				by, ok := errors.AsType[*limits.DeniedError](err)
				switch {
				case ok && by.By(limits.GPT4Month):
					denied = true
				case ok: // by tpm
					time.Sleep(by.RetryAfter) //nolint:forbidigo // in a bubble
				case err != nil:
					t.Fatal(err)
				}
			}
			table := spent(t, lim, org)
			if !denied || model.bill.Cmp(big.NewInt(int64(table))) != 0 {
				t.Errorf("org %s: the provider bills %v nano, the table has %v, denied: %t", org, &model.bill, table,
					denied)
			}
			if table > 5*money.Unit {
				t.Errorf("org %s: %v is overspent", org, table)
			}
		}
	})
}

// TestExhausted: a budget ends a reply with the output so far, and the next request is answered with 402.
func TestExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := start(t)
		month := limits.GPT4Limits{Month: new(41 * money.Cent / 10)} // one step of 0.03 and 0.01 for the call
		if _, err := lim.Config.GPT4.Entity(limits.Org{ID: "a"}).Set(t.Context(), month, ""); err != nil {
			t.Fatal(err)
		}
		g := gateway{lim.GPT4, parrot}
		for i, want := range []int{http.StatusOK, http.StatusPaymentRequired} {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader("Hello"))
			r.Header.Set("Authorization", "Bearer a/1")
			w := httptest.NewRecorder()
			g.ServeHTTP(w, r)
			words := strings.Count(w.Body.String(), "word ")
			if w.Code != want || i == 0 && words != 1_601 {
				t.Errorf("request %d: %d, %d words, want %d", i+1, w.Code, words, want)
			}
			if i == 1 && !strings.Contains(w.Body.String(), `"money":{"currency":"USD","requested":"0.030005",`) {
				t.Errorf("request %d: %s", i+1, w.Body)
			}
		}
	})
}

// TestNoReport: a stream that ends without a report stays charged as reserved.
func TestNoReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := start(t)
		silent := func(context.Context, int64) iter.Seq[delta] {
			return func(yield func(delta) bool) { yield(delta{text: "word", output: 1}) }
		}
		key := limits.Key{ID: "1", Org: limits.Org{ID: "a"}}
		if err := (gateway{lim.GPT4, silent}).complete(t.Context(), key, 100, io.Discard); err != nil {
			t.Fatal(err)
		}
		want := limits.GPT4Usage{Input: 100, Output: step, Call: 1}.Cost().Month
		if got := spent(t, lim, "a"); got != want {
			t.Errorf("%v is spent, want %v", got, want)
		}
	})
}
