package dynamo

import (
	"context"
	"errors"
	"math"
	"net"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/pace"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestExhausted has every attempt of an acquire fail: the error says how many there were, and the last one's
// cause.
func TestExhausted(t *testing.T) {
	for name, test := range map[string]struct {
		mishap   mishap
		attempts int
		err      string
		charged  int64
	}{
		"throttled": {
			reject("ProvisionedThroughputExceededException", "slow down"), 1 + pace.MostUnanswered,
			"unavailable gpt-4 21 throttled: ProvisionedThroughputExceededException: slow down", 0,
		},
		"lost requests": {
			loseRequest, 3,
			"unavailable gpt-4 3: request send failed, read tcp: read: connection reset by peer", 0,
		},
		"a single attempt": {
			loseReply, 1,
			"unavailable gpt-4 1: request send failed, read tcp: read: connection reset by peer", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.put(t, half().Item(t))
			client, w := e.withNetwork()
			process := e.demo(t, client, option(Attempts(test.attempts)))
			if _, err := process.GPT4.Peek(t.Context(), alice); err != nil {
				t.Fatal(err)
			}
			w.expect(slices.Repeat([]mishap{test.mishap}, test.attempts)...)
			_, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 10})
			failure, ok := errors.AsType[*store.UnavailableError](err)
			if !ok || failure.Attempts != test.attempts {
				t.Fatalf("got %v, want an UnavailableError after %d attempts", err, test.attempts)
			}
			wantErr(t, err, test.err)
			if err := process.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			e.charged(t, test.charged) // a charge whose reply was lost has been given back
		})
	}
}

// TestContended has a process lose every race: whenever it writes, another one has just taken all there was.
func TestContended(t *testing.T) {
	e, process, w := wired(t)
	other := script{t, e, e.demo(t, e.client)}
	level := int64(50)
	race := func(_ *network, apply func() (*http.Response, error)) (*http.Response, error) {
		other.acquire(level, 0)
		r, err := apply()
		e.clock.set(e.clock.Since.Load() + 60_000) // full again
		level = 100
		return r, err
	}
	w.expect(slices.Repeat([]mishap{race}, DefaultAttempts)...)
	_, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 10})
	if contended, ok := errors.AsType[*store.ContendedError](err); !ok || contended.Attempts != DefaultAttempts {
		t.Errorf("got a %T", err)
	}
	wantErr(t, err, "contended gpt-4 user-1 8")
	// If other writers are at work, an image of before a pause is read again before the next write.
	process.calls(
		t,
		append(
			[]string{"retry refused"},
			slices.Repeat([]string{"read found", "normal refused"}, DefaultAttempts-1)...)...)
	if tk, tc := e.balance(t, "gpt-4", "rpm"); tk != 0 || tc != 800_000 {
		t.Errorf("%d left, %d charged; want 0 and 800000", tk, tc)
	}
}

// TestConnectionRefused points the client at a port where nobody listens: nothing was charged, whatever was
// tried.
func TestConnectionRefused(t *testing.T) {
	e := newEngine(t)
	e.put(t, half().Item(t))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	o := e.client.Options()
	o.Retryer = aws.NopRetryer{} // of reads: its pauses take real time
	refused := dynamodb.New(o, func(o *dynamodb.Options) {
		o.BaseEndpoint, o.HTTPClient = aws.String("http://"+closed), http.DefaultClient
	})
	fresh := e.demo(t, refused)

	_, err = fresh.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 10})
	if !isA[*store.UnavailableError](err) ||
		!strings.HasSuffix(err.Error(), "dial tcp "+closed+": connect: connection refused") {
		t.Errorf("by a fresh process: %v", err)
	}
	fresh.calls(t, slices.Repeat([]string{"read failed"}, DefaultAttempts)...)

	// One that knows the bucket need not read.
	moving := &movable{API: dynamodb.New(o)}
	process := e.demo(t, moving)
	lease := script{t, e, process}.acquire(10, 0)
	process.calls(t, "read found", "retry applied")
	moving.API = refused
	_, err = process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 10})
	if failure, ok := errors.AsType[*store.UnavailableError](err); !ok || failure.Attempts != DefaultAttempts {
		t.Errorf("got %v, want an UnavailableError after %d attempts", err, DefaultAttempts)
	}
	process.calls(t, slices.Repeat([]string{"retry unapplied"}, DefaultAttempts)...)
	moving.API = dynamodb.New(o)
	if err := process.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.charged(t, 10_000)
	lease.Release(t.Context())
	e.charged(t, 0)
	process.calls(t, "adjust applied")
}

// movable is an API that a test points elsewhere.
type movable struct{ wire.API }

// TestSetupErrors holds what a failed call asks somebody to fix.
func TestSetupErrors(t *testing.T) {
	e := newEngine(t)
	e.put(t, half().Item(t))
	otherKeys := tableWith(t, e.client, func(in *dynamodb.CreateTableInput) {
		in.KeySchema[0].AttributeName, in.AttributeDefinitions[0].AttributeName = aws.String("Id"), aws.String("Id")
	})
	noTable, noKey := "Requested resource not found", "The provided key element does not match the schema"
	if dynamotest.OnLocal(t) {
		noTable, noKey = "Cannot do operations on a non-existent table",
			"One of the required keys was not given a value"
	}
	for name, test := range map[string]struct {
		table  string
		mishap mishap
		err    string
	}{
		"missing table": {
			table: "nobody-made-this",
			err: "setup: table TABLE does not exist | ResourceNotFoundException: " + noTable + " | " +
				"run `sluice table create --table TABLE`, or check region and endpoint",
		},
		"other keys": {
			table: otherKeys,
			err: "setup: DynamoDB does not accept the request | ValidationException: " + noKey + " | " +
				"run `sluice table check`, and `sluice generate` if the generated code is older than the runtime",
		},
		"access denied": {
			mishap: reject("AccessDeniedException", "not authorized to perform: dynamodb:UpdateItem"),
			err: "setup: DynamoDB denies access to table TABLE | " +
				"AccessDeniedException: not authorized to perform: dynamodb:UpdateItem | " +
				"attach a policy that `sluice infra iam --table TABLE` prints: acquire's to a service, admin's to an " +
				"operator",
		},
		"credentials": {
			mishap: reject("UnrecognizedClientException", "the security token is invalid"),
			err: "setup: DynamoDB does not accept the credentials | " +
				"UnrecognizedClientException: the security token is invalid | " +
				"renew them",
		},
		"anything else": {
			mishap: reject("ItemCollectionSizeLimitExceededException", "too much"),
			err: "setup: DynamoDB refused the call | ItemCollectionSizeLimitExceededException: too much | " +
				"check the client's configuration",
		},
	} {
		t.Run(name, func(t *testing.T) {
			client, w := e.withNetwork()
			table := e.table
			if test.table != "" {
				table = test.table
			}
			if test.mishap != nil {
				w.expect(test.mishap)
			}
			process := (&engine{table: table, ttl: e.ttl}).demo(t, client)
			_, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1})
			if !isA[*store.SetupError](err) {
				t.Errorf("got a %T", err)
			}
			wantErr(t, err, strings.ReplaceAll(test.err, "TABLE", table))
			if len(process.Failures) != 1 || !errors.Is(process.Failures[0], err) {
				t.Errorf("observed %v", process.Failures)
			}
		})
	}
	e.charged(t, 0)
}

// TestNoCredentials has the client itself refuse.
func TestNoCredentials(t *testing.T) {
	e := newEngine(t)
	o := e.client.Options()
	o.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("none here")
	})
	_, err := e.demo(t, dynamodb.New(o)).GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1})
	if !isA[*store.SetupError](err) {
		t.Errorf("got a %T", err)
	}
	wantErr(t, err, "setup: no AWS credentials | get identity: get credentials: none here | "+
		"set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role")
}

// TestMalformed meets buckets that nobody of us wrote: by a read, and by a write's reply.
func TestMalformed(t *testing.T) {
	for name, test := range map[string]struct {
		spoil  func(codec.Item)
		err    string
		unread bool // in a write's reply, of which rf and balances are read
	}{
		"a balance that is text": {
			func(stored codec.Item) { stored["b_rpm_tk"] = codec.S("50000") },
			"attribute b_rpm_tk S", false,
		},
		"a balance with a fraction": {
			func(stored codec.Item) { stored["b_rpm_tk"] = &types.AttributeValueMemberN{Value: "0.5"} },
			`attribute b_rpm_tk "0.5"`, false,
		},
		"half a limit": {
			func(stored codec.Item) { delete(stored, "b_tpm_rp") },
			"attribute b_tpm_rp missing", true,
		},
		"the other half": {
			func(stored codec.Item) { delete(stored, "b_tpm_tk") },
			"attribute b_tpm_tk missing", false,
		},
		"a period of 0": {
			func(stored codec.Item) { stored["b_rpm_rp"] = codec.N(0) },
			"attribute b_rpm_rp 0", true,
		},
		"no rf": {
			func(stored codec.Item) { delete(stored, "rf") },
			"attribute rf missing", false,
		},
		"a balance at its maximum": {
			func(stored codec.Item) { stored["b_rpm_tk"] = codec.N(math.MaxInt64) },
			"attribute b_rpm_tk 9223372036854775807", false,
		},
		"a total near its maximum": {
			func(stored codec.Item) { stored["b_rpm_tc"] = codec.N(math.MaxInt64 - 1) },
			"attribute b_rpm_tc 9223372036854775806", true,
		},
		"a limit that is a path": {
			func(stored codec.Item) {
				for _, field := range item.LimitFields {
					stored["b_a.b_"+field] = codec.N(60_000)
				}
			},
			"attribute b_a.b_tk limit", true,
		},
		"half an unknown limit": {
			func(stored codec.Item) { stored["b_ipm_tk"] = codec.N(1) },
			"attribute b_ipm_tc missing", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			want := "setup: the bucket of user-1 on gpt-4 is malformed | " + test.err +
				" | fix or delete the item: a missing bucket is a full one"
			e, process, _ := wired(t)
			stored := half().Item(t)
			test.spoil(stored)
			e.put(t, stored)
			fresh := e.demo(t, e.client)
			_, err := fresh.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1})
			if !isA[*store.SetupError](err) {
				t.Errorf("got a %T", err)
			}
			wantErr(t, err, want)
			_, err = fresh.GPT4.Peek(t.Context(), alice)
			wantErr(t, err, want)
			_, err = operator.Reset(t.Context(), e.client, e.table, "user-1", "gpt-4")
			if name != "the other half" { // to Reset, which knows no schema, that is no limit
				wantErr(t, err, want)
			}
			// By a process that knew the bucket when it was sound, and so writes first. It goes by the parameters that
			// it knows, which cv says are those in force, and reads no others.
			charged := stored["b_rpm_tc"]
			for range 2 {
				_, err = process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1})
				if !test.unread {
					wantErr(t, err, want)
				} else if err != nil {
					t.Error(err)
				}
			}
			switch {
			case name == "a total near its maximum":
				charged = &types.AttributeValueMemberN{Value: "9223372036854777806"}
			case test.unread:
				charged = codec.N(52_000)
			}
			if err := process.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			// The charge was given back once the reply turned out malformed.
			if got := e.get(t, item.BucketKey("user-1", "gpt-4"))["b_rpm_tc"]; !reflect.DeepEqual(got, charged) {
				t.Errorf("charged: b_rpm_tc is %v, want %v", got, charged)
			}
			_, err = operator.Inspect(t.Context(), e.client, e.table, "user-1", "gpt-4")
			switch name {
			case "the other half": // to Inspect, which knows no schema, that is no limit
				want = ""
			case "a total near its maximum": // charged twice, no 64 bits hold it
				want = strings.Replace(want, "9223372036854775806", `"9223372036854777806"`, 1)
			}
			wantErr(t, err, want)
		})
	}
}

// TestMalformedAtSettle: a settle whose condition fails, here since the bucket has another shape, gets the
// bucket, and reports what no bucket holds.
func TestMalformedAtSettle(t *testing.T) {
	for attr, value := range map[string]int64{
		"b_rpm_tk": math.MaxInt64, "b_tpm_tk": math.MinInt64, "b_rpm_tc": math.MaxInt64, "b_a.b_tk": 1,
	} {
		t.Run(attr, func(t *testing.T) {
			e, process, _ := wired(t)
			lease, err := process.GPT4.Acquire(t.Context(), alice, limits.GPT4Cost{RPM: 1, TPM: 100})
			if err != nil {
				t.Fatal(err)
			}
			stored := half()
			stored.CV = 2 * bucket.RevisionUnit
			spoiled := stored.Item(t)
			spoiled[attr] = codec.N(value)
			e.put(t, spoiled)
			err = lease.Settle(t.Context(), limits.GPT4Cost{RPM: 1, TPM: 200})
			setup, ok := errors.AsType[*store.SetupError](err)
			wrong, named := errors.AsType[*codec.AttributeError](err)
			if !ok || !named || wrong.Attr != attr {
				t.Errorf("got %v (%v), want a SetupError that names %s", err, setup, attr)
			}
		})
	}
}

// TestItemDeleted deletes the bucket, as DynamoDB does by its ttl, between an acquire and what settles it.
func TestItemDeleted(t *testing.T) {
	deleted := func(t *testing.T) (script, *limits.GPT4Lease) {
		t.Helper()
		e, process, _ := wired(t)
		s := script{t, e, process}
		lease := s.acquire(10, 2000)
		if _, err := e.client.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{
			TableName: &e.table, Key: item.BucketKey("user-1", "gpt-4"),
		}); err != nil {
			t.Fatal(err)
		}
		e.clock.set(1000)
		process.calls(t, "retry applied")
		return s, lease
	}
	nothing := func(s script) {
		s.Helper()
		if stored := s.get(s, item.BucketKey("user-1", "gpt-4")); stored != nil {
			s.Errorf("a bucket was written: %v", plain(stored))
		}
	}
	t.Run("release", func(t *testing.T) {
		s, lease := deleted(t)
		lease.Release(t.Context())
		s.demo.calls(t, "adjust refused")
		nothing(s)
	})
	t.Run("settle down", func(t *testing.T) {
		s, lease := deleted(t)
		s.settle(lease, 5, 1000)
		s.demo.calls(t, "adjust refused")
		nothing(s)
	})
	t.Run("settle up", func(t *testing.T) {
		s, lease := deleted(t)
		s.settle(lease, 15, 1000)
		s.demo.calls(t, "settle refused", "settle applied")
		s.stored(t, row{RF: 1000, CV: 1, TTL: 181, Limits: holds(95_000, 5000, 15_000_000, 0)})
	})
	t.Run("settle up, into debt", func(t *testing.T) { // 340 s from full
		s, lease := deleted(t)
		s.settle(lease, 210, 32_000)
		s.demo.calls(t, "settle refused", "settle applied")
		s.stored(t, row{RF: 1000, CV: 1, TTL: 361, Limits: holds(-100_000, 200_000, -15_000_000, 30_000_000)})
	})
	t.Run("acquire", func(t *testing.T) {
		s, _ := deleted(t)
		s.acquire(1, 0)
		s.demo.calls(t, "retry refused", "create applied")
	})
}

// TestTwoResources shows that one store serves several resources and kinds, each in a bucket of its own.
func TestTwoResources(t *testing.T) {
	e := newEngine(t)
	process := e.demo(t, e.client)
	project := limits.Project{ID: "1"}
	if _, err := process.GPT4.Acquire(t.Context(), project, limits.GPT4Cost{TPM: 100_000}); err != nil {
		t.Fatal(err)
	}
	if _, err := process.Embeddings.Acquire(t.Context(), project, limits.EmbeddingsCost{RPS: 3}); err != nil {
		t.Fatal(err)
	}
	script{t, e, process}.acquire(1, 1)
	e.stored(t, row{Entity: "project-1", CV: 1, TTL: 180, Limits: map[string]bucket.Balance{
		"rpm": {Limit: bucket.Per(1000, time.Minute), Tokens: 999_000, Consumed: 1000},
		"tpm": {
			Limit:    bucket.Per(100_000, time.Minute).WithBurst(150_000),
			Tokens:   50_000_000,
			Consumed: 100_000_000,
		},
	}})
	e.stored(
		t,
		row{Entity: "project-1", Resource: "embeddings", CV: 1, TTL: 2, Limits: map[string]bucket.Balance{
			"rps": {Limit: bucket.Per(20, time.Second), Tokens: 17_000, Consumed: 3000},
		}},
	)
	e.stored(t, row{CV: 1, TTL: 180, Limits: holds(99_000, 1000, 14_999_000, 1000)})
}
