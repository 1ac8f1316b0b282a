package dynamo

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// used is a bucket in debt in tpm, with a limit that the demonstration does not know.
func used() row {
	return row{
		CV:  1,
		Op:  "before",
		TTL: 500,
		RF:  -500,
		Limits: with(holds(10_000, 90_000, -2_000_000, 17_000_000),
			"ipm", bucket.Balance{Limit: bucket.Per(5, time.Minute), Tokens: 1}),
	}
}

// TestReset holds what is filled, attribute by attribute: rf, ttl, cv and what was consumed stay.
func TestReset(t *testing.T) {
	for name, test := range map[string]struct {
		limits, want []string
	}{
		"all":            {nil, []string{"ipm", "rpm", "tpm"}},
		"one":            {[]string{"tpm"}, []string{"tpm"}},
		"two, one twice": {[]string{"tpm", "ipm", "tpm"}, []string{"ipm", "tpm"}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			before := used()
			e.put(t, before.Item(t))
			got, err := operator.Reset(t.Context(), e.client, e.table, "user-1", "gpt-4", test.limits...)
			if !slices.Equal(got, test.want) || err != nil {
				t.Errorf("filled %v, %v; want %v", got, err, test.want)
			}
			want := before
			want.Op = ""
			for _, name := range test.want {
				b := want.Limits[name]
				b.Tokens = b.Burst
				want.Limits = with(want.Limits, name, b)
			}
			e.stored(t, want)
			if op := plain(e.get(t, item.BucketKey("user-1", "gpt-4")))["op"]; op == "S before" {
				t.Error("op is that of the write before")
			}
		})
	}
}

// TestResetRefused: what is misspelt is said, with what there is, and nothing is filled.
func TestResetRefused(t *testing.T) {
	e := newEngine(t)
	e.put(t, used().Item(t))
	got, err := operator.Reset(t.Context(), e.client, e.table, "user-1", "gpt-4", "rpm", "rmp")
	if !isA[*store.InvalidError](err) || got != nil {
		t.Errorf("filled %v, a %T", got, err)
	}
	const want = `invalid gpt-4 limit "rmp" is not in the bucket of user-1, which has ipm, rpm, tpm`
	if errtext.Reason(err) != want {
		t.Errorf("got %s\nwant %s", errtext.Reason(err), want)
	}
	e.stored(t, used())

	got, err = operator.Reset(t.Context(), e.client, e.table, "user-2", "gpt-4")
	if len(got) > 0 || err != nil {
		t.Errorf("filled %v, %v of no bucket", got, err)
	}
	if item := e.get(t, item.BucketKey("user-2", "gpt-4")); item != nil {
		t.Errorf("made %v", item)
	}

	torn := used().Item(t)
	delete(torn, "b_rpm_bx")
	e.put(t, torn)
	_, err = operator.Reset(t.Context(), e.client, e.table, "user-1", "gpt-4", "tpm")
	wantSetup(t, err, "user-1", "gpt-4", "attribute b_rpm_bx missing")

	_, err = operator.Reset(t.Context(), e.client, "nobody-made-this", "user-1", "gpt-4")
	wantSetup(t, err, "table nobody-made-this", "ResourceNotFoundException")
}

// TestResetAgain: a reset goes again whatever became of it, and looks again where the bucket has changed.
func TestResetAgain(t *testing.T) {
	change := func(do func(e *engine)) func(*engine) mishap {
		return func(e *engine) mishap {
			return func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
				do(e)
				return apply()
			}
		}
	}
	one := func(m mishap) func(*engine) mishap { return func(*engine) mishap { return m } }
	all := []string{"ipm", "rpm", "tpm"}
	for name, test := range map[string]struct {
		mishap func(*engine) mishap
		want   []string
		writes int
	}{
		"lost reply":   {one(loseReply), all, 2},
		"lost request": {one(loseRequest), all, 2},
		"500":          {one(fail500), all, 2},
		"duplicate":    {one(duplicate), all, 1},
		"throttled":    {one(reject("ThrottlingException", "slow down")), all, 2},
		"a limit removed meanwhile": {change(func(e *engine) {
			less := used()
			delete(less.Limits, "ipm")
			e.put(t, less.Item(t))
		}), all[1:], 2},
		"deleted meanwhile": {change(func(e *engine) {
			_, err := e.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: &e.table,
				Key: item.BucketKey("user-1", "gpt-4")})
			if err != nil {
				t.Error(err)
			}
		}), nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.put(t, used().Item(t))
			client, w := e.withNetwork()
			w.expect(test.mishap(e))
			got, err := operator.Reset(t.Context(), client, e.table, "user-1", "gpt-4")
			if !slices.Equal(got, test.want) || err != nil {
				t.Errorf("filled %v, %v; want %v", got, err, test.want)
			}
			w.writes(t, test.writes)
			item := e.get(t, item.BucketKey("user-1", "gpt-4"))
			if (item == nil) != (test.want == nil) {
				t.Errorf("the bucket is %v", plain(item))
			}
			for _, limit := range test.want {
				if tk, bx := number(item["b_"+limit+"_tk"]), number(item["b_"+limit+"_bx"]); tk != bx {
					t.Errorf("%s has %d of %d", limit, tk, bx)
				}
			}
		})
	}
	t.Run("all the time", func(t *testing.T) {
		e := newEngine(t)
		client, w := e.withNetwork()
		changes := 0
		toggle := change(func(e *engine) {
			next := used()
			if changes++; changes%2 == 1 {
				next.Limits = map[string]bucket.Balance{"rpm": next.Limits["rpm"]}
			} else {
				delete(next.Limits, "rpm")
			}
			e.put(t, next.Item(t))
		})(e)
		full := used()
		delete(full.Limits, "rpm")
		e.put(t, full.Item(t))
		w.expect(slices.Repeat([]mishap{toggle}, wire.OperatorAttempts)...)
		_, err := operator.Reset(t.Context(), client, e.table, "user-1", "gpt-4")
		wantErr(t, err, "contended gpt-4 user-1 10")
	})
	t.Run("down", func(t *testing.T) {
		e, memory := newFaulty(t)
		e.put(t, used().Item(t))
		o := e.client.Options()
		o.Retryer = aws.NopRetryer{} // of the read: its pauses take real time
		memory.Faults().InternalErrors(1)
		_, err := operator.Reset(t.Context(), dynamodb.New(o), e.table, "user-1", "gpt-4")
		if !isA[*store.UnavailableError](err) {
			t.Errorf("got a %T", err)
		}
		wantErr(t, err, "unavailable table "+e.table+": InternalServerError: Internal server error")
		memory.Faults().Clear()
	})
}

// ledger is an API that notes what rpm was short of when it was updated.
type ledger struct {
	wire.API
	filled int64
}

func (l *ledger) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	noted := *in
	noted.ReturnValues = types.ReturnValueAllOld
	out, err := l.API.UpdateItem(ctx, &noted, opts...)
	if err == nil {
		l.filled += number(out.Attributes["b_rpm_bx"]) - number(out.Attributes["b_rpm_tk"])
	}
	return out, err
}

// surplus returns how much more was charged to rpm, or is left of it, than there was at first and was filled
// up, in millitokens. It has come by refill, or is wrong.
func (l *ledger) surplus(t *testing.T, e *engine) int64 {
	t.Helper()
	tk, tc := e.balance(t, "gpt-4", "rpm")
	more := tc + tk - userRPM.Burst - l.filled
	t.Logf("%d charged, %d left of %d and %d filled up: %d more", tc, tk, userRPM.Burst, l.filled, more)
	return more
}

// TestResetBesideAcquires has processes take more than there is while the bucket is reset, again and again.
func TestResetBesideAcquires(t *testing.T) {
	const processes, resets, each = 4, 8, 40
	for name, step := range map[string]int64{"at one instant": 0, "as time passes": 500} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			noting := &ledger{API: e.client}
			gpt4, _ := generated(t)
			desks := make([]*desk, processes)
			for i := range desks {
				desks[i] = e.desk(t, e.client, withNumbers(gpt4, 1, userRPM, userTPM))
			}
			if _, err := desks[0].Acquire(t.Context(), "1", tokens{1, 0}); err != nil {
				t.Fatal(err)
			}
			for n := range int64(resets) {
				e.clock.set(n * step)
				together(t, processes+1, func(i int) error {
					if i == processes {
						return second(operator.Reset(t.Context(), noting, e.table, "user-1", "gpt-4"))
					}
					for range each {
						_, err := desks[i].Acquire(t.Context(), "1", tokens{1, 0})
						if err != nil && !isA[*store.DeniedError](err) && !isA[*store.ContendedError](err) {
							return err
						}
					}
					return nil
				})
			}
			if n, came := noting.surplus(t, e), bucket.Refill(userRPM, t0, t0+resets*step); n < 0 || n > came {
				t.Error("that is not exact")
			}
			if noting.filled < resets*userRPM.Burst/8 {
				t.Error("there was little to fill up")
			}
		})
	}
}

// TestResetControl is what a reset must not be: one that reads how much is missing in the bucket, and adds
// that.
func TestResetControl(t *testing.T) {
	e := newEngine(t)
	noting := &ledger{API: e.client}
	gpt4, _ := generated(t)
	process := e.desk(t, e.client, withNumbers(gpt4, 1, userRPM, userTPM))
	missing := int64(0)
	for _, cost := range []int64{50, 10} {
		if _, err := process.Acquire(t.Context(), "1", tokens{cost, 0}); err != nil {
			t.Fatal(err)
		}
		if missing == 0 {
			tk, _ := e.balance(t, "gpt-4", "rpm")
			missing = userRPM.Burst - tk
		}
	}
	_, err := noting.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &e.table, Key: item.BucketKey("user-1", "gpt-4"),
		UpdateExpression:          aws.String("SET op = :op ADD b_rpm_tk :missing"),
		ExpressionAttributeValues: codec.Item{":op": codec.S(wire.NewOp()), ":missing": codec.N(missing)},
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := noting.surplus(t, e); n != -10_000 {
		t.Errorf("%d more than there was, want 10 tokens less: those of the second call were not filled up", n)
	}
}
