package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/doccheck"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// handClock is moved by hand: who waits for it does not have to.
type handClock struct{ now time.Time }

func (c *handClock) Now() time.Time { return c.now }

func (c *handClock) After(time.Duration) <-chan time.Time {
	ready := make(chan time.Time, 1)
	ready <- c.now
	return ready
}

// onCall is a service with its table, and the person on call for it. The service writes to service.log what
// sluice logs, and the errors that its callers get.
type onCall struct {
	t      *testing.T
	clock  handClock
	engine *memdynamo.Engine
	client *dynamodb.Client
	lim    *limits.Limiter
	log    *slog.Logger
	out    bytes.Buffer // of log
}

// newLog returns a log without times.
func newLog(out *bytes.Buffer) *slog.Logger {
	return slog.New(
		slog.NewTextHandler(out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		}}),
	)
}

// do does something to the service, after which service.log has what was logged meanwhile.
func (s *onCall) do(what func() error) func() {
	return func() {
		s.t.Helper()
		s.out.Reset()
		if err := what(); err != nil {
			s.t.Fatal(err)
		}
		s.write()
	}
}

func (s *onCall) write() {
	s.t.Helper()
	if err := os.WriteFile("service.log", s.out.Bytes(), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

// call is a call of the service: an error is logged.
func (s *onCall) call(user, project string, cost limits.GPT4Cost) *limits.GPT4Lease {
	lease, err := s.lim.GPT4.Acquire(
		s.t.Context(),
		limits.User{ID: user, Project: limits.Project{ID: project}},
		cost,
	)
	if err != nil {
		s.log.Warn("call failed", "error", err)
	}
	return lease
}

// pass has that much time pass.
func (s *onCall) pass(d time.Duration) { s.clock.now = s.clock.now.Add(d) }

// readBefore is so short that overrides are read before a write. If they were read beside it, the number of
// writes that a change of them costs would depend on which of the two is first. Records in the stream are
// figures of the runbook.
const readBefore = 500 * time.Millisecond

// runbookDocs is the service of docs/runbook.md.
func runbookDocs(t *testing.T) doccheck.World {
	t.Helper()
	s := &onCall{t: t, clock: handClock{redisTime}}
	s.log = newLog(&s.out)
	s.engine = memdynamo.New(memdynamo.WithClock(&s.clock))
	s.client = s.engine.Client()
	var err error
	if _, err = operator.CreateTable(t.Context(), s.client, usageTable); err == nil {
		s.lim, err = limits.New(
			dynamo.New(s.client, usageTable),
			runtime.WithClock(&s.clock),
			runtime.WithLogger(s.log),
			runtime.WithCacheTTL(readBefore),
		)
	}
	if err != nil {
		t.Fatal(err)
	}
	schema := read(t, "limits.yaml")
	t.Chdir(t.TempDir())
	if err := os.WriteFile("limits.yaml", []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	url := serve(t, s.engine)
	addr, given := s.onRedis()
	maps.Copy(given, map[string]func(){
		"users of project-1 call from many processes": s.do(s.hotKey),
		"nothing answers":                                         s.outage(),
		"it answers again":                                        func() { s.engine.Faults().Clear() },
		"a host's clock is an hour ahead":                         s.do(s.clockAhead),
		"100 requests per minute are a mistake":                   s.do(s.wrongLimit),
		"a minute has passed":                                     s.do(s.aMinuteLater),
		"user-9 used 40,000 tokens where 500 were estimated":      s.do(s.debt),
		"user-77 has per-limit items":                             s.do(s.perLimit),
		"it has begun":                                            s.do(s.begun),
		"revision 2 is deployed, and this process has revision 1": s.do(s.newer),
		"writes are throttled":                                    s.do(s.throttled),
		"a table with few units":                                  s.do(s.provisioned),
	})
	return doccheck.World{
		Sluice: sluiceAt(s.clock.Now), Given: given,
		Real: []string{"http://127.0.0.1:8000", url, "127.0.0.1:6379", addr},
		Masked: []*regexp.Regexp{
			regexp.MustCompile(`RequestID: [A-Z0-9]*`),
			regexp.MustCompile(`admitted=\d+`),
			regexp.MustCompile(`after \d+ attempts?`),               // how many fit into the Budget
			regexp.MustCompile(`for (user-2|project-1): contended`), // the last one met either
			regexp.MustCompile(`127\.0\.0\.1:\d+->127\.0\.0\.1:\d+`),
		},
	}
}

// hotKey has a call lose every race.
func (s *onCall) hotKey() error {
	for i := range 9 {
		s.call(fmt.Sprint(i+1), "1", limits.GPT4Cost{TPM: 14_000})
	}
	s.call("10", "2", limits.GPT4Cost{TPM: 4_000})
	s.engine.Faults().Conflict(1)
	s.call("2", "1", limits.GPT4Cost{TPM: 100})
	s.engine.Faults().Clear()
	return nil
}

// outage has the engine of the commands be down, and the log say what a service's does from the begin of an
// outage to its end. That is in a bubble, as the circuit breaker goes by the system's clock.
func (s *onCall) outage() func() {
	return func() {
		s.out.Reset()
		synctest.Test(s.t, func(t *testing.T) {
			engine := memdynamo.New()
			lim, err := limits.New(limittest.StoreOn(t, engine), runtime.WithLogger(s.log))
			if err != nil {
				t.Fatal(err)
			}
			call := func() {
				if _, err := lim.GPT4.Acquire(t.Context(), limits.User{ID: "123", Project: limits.Project{ID: "1"}},
					limits.GPT4Cost{TPM: 100}); err != nil {
					s.log.Warn("call failed", "error", err)
				}
			}
			call()
			engine.Faults().Down(true)
			for range 30 {
				call()
				time.Sleep(100 * time.Millisecond)
			}
			engine.Faults().Down(false)
			time.Sleep(time.Second)
			call()
		})
		s.write()
		s.engine.Faults().Down(true)
	}
}

// clockAhead has a program start, and then call, on a host whose clock is wrong.
func (s *onCall) clockAhead() error {
	lim, err := limits.New(
		dynamo.New(s.client, usageTable),
		runtime.WithClock(&handClock{s.clock.now.Add(time.Hour)}),
		runtime.WithLogger(s.log),
	)
	if err != nil {
		return err
	}
	if err := lim.Check(s.t.Context()); err != nil {
		s.log.Error("does not start", "error", err)
	}
	_, err = lim.GPT4.Acquire(
		s.t.Context(),
		limits.User{ID: "6", Project: limits.Project{ID: "6"}},
		limits.GPT4Cost{TPM: 15_000},
	)
	return err
}

// wrongLimit has a user meet a limit.
func (s *onCall) wrongLimit() error {
	s.pass(time.Minute)
	s.call("123", "3", limits.GPT4Cost{RPM: 100, TPM: 100})
	s.call("123", "3", limits.GPT4Cost{TPM: 100})
	return nil
}

func (s *onCall) aMinuteLater() error {
	s.pass(time.Minute)
	s.call("123", "3", limits.GPT4Cost{TPM: 100})
	return nil
}

// debt settles far above the estimate.
func (s *onCall) debt() error {
	lease := s.call("9", "4", limits.GPT4Cost{TPM: 500})
	if err := lease.Settle(s.t.Context(), limits.GPT4Cost{TPM: 40_000}); err != nil {
		return err
	}
	s.call("9", "4", limits.GPT4Cost{TPM: 500})
	return nil
}

// perLimit writes items of the layout that a migration is from.
func (s *onCall) perLimit() error {
	for limit, n := range map[string]int64{"rpm": 100_000, "tpm": 10_000_000} {
		burst := map[string]int64{"rpm": n, "tpm": 15_000_000}[limit]
		item := codec.Item{"PK": codec.S("ENTITY#user-77"), "SK": codec.S("#BUCKET#gpt-4#" + limit)}
		for name, value := range map[string]int64{
			perlimit.Tokens: n / 2, perlimit.Consumed: n, perlimit.Refilled: s.clock.now.UnixMilli(),
			perlimit.Capacity: n, perlimit.Burst: burst, perlimit.Refill: n, perlimit.Period: 60_000,
		} {
			item[name] = codec.N(value)
		}
		if _, err := s.client.PutItem(s.t.Context(), &dynamodb.PutItemInput{TableName: aws.String(usageTable),
			Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// begun has a program start that does not know of the migration.
func (s *onCall) begun() error {
	if err := s.lim.Check(s.t.Context()); err != nil {
		s.log.Error("does not start", "error", err)
	}
	return nil
}

// newer notes a higher revision in the table, as the first Reshape of it does.
func (s *onCall) newer() error {
	_, err := s.client.UpdateItem(s.t.Context(), &dynamodb.UpdateItemInput{
		TableName: aws.String(usageTable), Key: codec.Item{"PK": codec.S("SYSTEM#"), "SK": codec.S("#VERSION")},
		UpdateExpression:          aws.String("SET revision = :r"),
		ExpressionAttributeValues: codec.Item{":r": &types.AttributeValueMemberN{Value: "2"}},
	})
	if err != nil {
		return err
	}
	return s.lim.Check(s.t.Context())
}

// throttled has a call meet a table that is throttled.
func (s *onCall) throttled() error {
	s.engine.Faults().Throttle(1)
	s.call("8", "5", limits.GPT4Cost{TPM: 100})
	s.engine.Faults().Clear()
	return nil
}

// provisioned makes the table of a service whose units are too few.
func (s *onCall) provisioned() error {
	_, err := operator.Definition{Table: "few", ReadUnits: 5, WriteUnits: 5}.CreateTable(s.t.Context(), s.client)
	return err
}

// onRedis has the service call on a Redis in the process, which is at that address.
func (s *onCall) onRedis() (addr string, given map[string]func()) {
	s.t.Helper()
	server := miniredis.RunT(s.t)
	server.SetTime(redisTime)
	client := redis.NewClient(&redis.Options{Addr: server.Addr()})
	s.t.Cleanup(func() { _ = client.Close() })
	lim, err := limits.New(redisstore.New(client), runtime.WithClock(&s.clock), runtime.WithLogger(s.log))
	if err != nil {
		s.t.Fatal(err)
	}
	call := func() error {
		_, err := lim.GPT4.Acquire(
			s.t.Context(),
			limits.User{ID: "123", Project: limits.Project{ID: "1"}},
			limits.GPT4Cost{TPM: 5_000},
		)
		return err
	}
	replicated := map[string]string{} // tokens by key
	return server.Addr(), map[string]func(){
		"buckets are in Redis, whose master is a replica now": s.do(func() error {
			err := call()
			for _, key := range server.Keys() {
				replicated[key] = server.HGet(key, "tokens")
			}
			err = errors.Join(err, call()) // which is not replicated any more
			server.SetError("READONLY You can't write against a read only replica.")
			return errors.Join(err, call())
		}),
		"another one is the master, without the last write": s.do(func() error {
			server.SetError("")
			for key, tokens := range replicated {
				server.HSet(key, "tokens", tokens)
			}
			return nil
		}),
	}
}
