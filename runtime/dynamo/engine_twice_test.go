package dynamo

import (
	"context"
	"maps"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// twice is a process behind a network that delivers a write again when the test says so, and another process.
type twice struct {
	script

	w     *network
	api   wire.API // of the process
	other script
}

// keep has the network keep a copy of the next write.
func (f *twice) keep() { f.w.expect(keep) }

// held returns a lease of 10 tokens, the last write to a bucket that is half full.
func (f *twice) held() *limits.GPT4Lease {
	f.put(f.T, half().Item(f.T))
	return f.acquire(10, 0)
}

// family returns a process on embeddings, where users share a project.
func (f *twice) family(api wire.API) *house {
	_, embeddings := generated(f.T)
	return f.house(f.T, api, family(embeddings, store.CascadeAtomic, minute(1000), minute(100)))
}

// consumed returns what all buckets have consumed, in tokens of rpm and rps.
func (f *twice) consumed() (n int64) {
	f.Helper()
	all, err := f.client.Scan(f.Context(), &dynamodb.ScanInput{
		TableName: &f.table, ConsistentRead: aws.Bool(true),
	})
	if err != nil {
		f.Fatal(err)
	}
	for _, stored := range all.Items {
		for _, name := range []string{"b_rpm_tc", "b_rps_tc"} {
			if tc, ok := stored[name]; ok {
				n += number(tc)
			}
		}
	}
	return n / bucket.Milli
}

// delivered is a write of which the network has kept a copy.
type delivered struct {
	*events          // of its process
	path    string   // as observers get it
	others  func()   // what another process does then; nil if it acquires a token of user-1's rpm
	takes   [2]int64 // tokens that the copy takes while the write is the last one, and after the others'
}

// settleLazily has a half full bucket, and defers a settle there that gives 6 tokens back. The settle is at
// that time, and so not overdue.
func (f *twice) settleLazily(at int64) {
	f.Helper()
	f.put(f.T, half().Item(f.T))
	lazy := f.demo.GPT4.With(runtime.LazySettle(true))
	lease, err := lazy.Acquire(f.Context(), alice, limits.GPT4Cost{RPM: 10})
	if err != nil {
		f.Fatal(err)
	}
	f.clock.set(at)
	f.settle(lease, 4, 0)
}

// deliveries are all paths, by name. A copy that takes less than nothing forges tokens.
func deliveries() map[string]func(*twice) delivered {
	takeOne := limits.GPT4Cost{RPM: 1}
	return map[string]func(*twice) delivered{
		"create": func(f *twice) delivered {
			f.keep()
			f.acquire(10, 0)
			return delivered{path: "create applied"}
		},
		"create, and the bucket is deleted": func(f *twice) delivered {
			f.keep()
			f.acquire(10, 0)
			return delivered{path: "create applied", takes: [2]int64{0, 10}, others: func() {
				key := item.BucketKey("user-1", "gpt-4")
				_, err := f.client.DeleteItem(f.Context(), &dynamodb.DeleteItemInput{TableName: &f.table, Key: key})
				if err != nil {
					f.Fatal(err)
				}
			}}
		},
		"normal": func(f *twice) delivered {
			f.held()
			f.clock.set(1000)
			f.keep()
			f.acquire(41, 0)
			return delivered{path: "normal applied", others: func() {
				f.clock.set(2000)
				f.other.acquire(1, 0)
			}}
		},
		"retry": func(f *twice) delivered {
			f.held()
			f.keep()
			f.acquire(10, 0)
			return delivered{path: "retry applied", takes: [2]int64{0, 10}}
		},
		"settle for more": func(f *twice) delivered {
			lease := f.held()
			f.keep()
			f.settle(lease, 15, 0)
			return delivered{path: "settle applied", takes: [2]int64{0, 5}}
		},
		"release": func(f *twice) delivered {
			lease := f.held()
			f.keep()
			lease.Release(f.Context())
			return delivered{path: "adjust applied"}
		},
		"settle for less": func(f *twice) delivered {
			lease := f.held()
			f.keep()
			f.settle(lease, 4, 0)
			return delivered{path: "adjust applied"}
		},
		"settle for less, where others are known to write": func(f *twice) delivered {
			lease := f.held()
			f.other.acquire(1, 0)
			f.w.expect(pass, keep)
			f.settle(lease, 4, 0)
			f.demo.calls(f.T, "read found", "retry applied", "adjust refused", "adjust applied")
			f.demo.Paths = []string{"adjust applied"}
			return delivered{path: "adjust applied", takes: [2]int64{0, -6}}
		},
		"settle for less, and the image is forgotten": func(f *twice) delivered {
			f.demo = f.engine.demo(f.T, f.api, option(ImageCache(1)))
			lease := f.held()
			if _, err := f.demo.GPT4.Acquire(f.Context(), limits.User{ID: "2"}, takeOne); err != nil {
				f.Fatal(err)
			}
			f.keep()
			f.settle(lease, 4, 0) // the bucket is read for it
			return delivered{path: "adjust applied"}
		},
		"settle for less of one limit and more of another": func(f *twice) delivered {
			lease := f.held()
			f.keep()
			f.settle(lease, 4, 20)
			return delivered{path: "settle applied"}
		},
		"settle with the next retry": func(f *twice) delivered {
			f.settleLazily(0)
			f.keep()
			f.acquire(2, 0)
			return delivered{path: "retry applied"}
		},
		"settle with the next normal": func(f *twice) delivered {
			f.settleLazily(2000)
			f.keep()
			f.acquire(48, 0)
			return delivered{path: "normal applied"}
		},
		"release of an abandoned charge": func(f *twice) delivered {
			f.put(f.T, half().Item(f.T))
			ctx, cancel := context.WithCancel(f.Context())
			f.w.expect(then(cancel, loseReply), keep)
			if _, err := f.demo.GPT4.Acquire(ctx, alice, takeOne); err == nil {
				f.Fatal("admitted")
			}
			if err := f.demo.Close(f.Context()); err != nil {
				f.Fatal(err)
			}
			return delivered{path: "undo applied"}
		},
		"reshape": func(f *twice) delivered {
			gpt4, _ := generated(f.T)
			f.put(f.T, half().Item(f.T))
			f.keep()
			d := f.desk(f.T, f.api, withNumbers(gpt4, 2, userRPM, userTPM))
			if _, err := d.Acquire(f.Context(), "1", tokens{10, 0}); err != nil {
				f.Fatal(err)
			}
			return delivered{events: d.events, path: "reshape applied"}
		},
		"release where a limit is missing": func(f *twice) delivered {
			gpt4, _ := generated(f.T)
			left := map[string]bucket.Balance{"rpm": half().Limits["rpm"]}
			f.put(f.T, row{CV: 3, Op: "before", Limits: left}.Item(f.T))
			d := f.desk(f.T, f.api, withNumbers(gpt4, 2, userRPM, userTPM))
			lease, err := d.Acquire(f.Context(), "1", tokens{10, 0})
			if err != nil {
				f.Fatal(err)
			}
			f.keep()
			lease.Release(f.Context())
			return delivered{events: d.events, path: "generic adjust applied"}
		},
		"transaction": func(f *twice) delivered {
			h, other := f.family(f.api), f.family(f.client)
			h.acquire(f.T, alicesHome, 1)
			f.keep()
			h.acquire(f.T, alicesHome, 10)
			return delivered{events: h.events, path: "transact applied", others: func() {
				other.acquire(f.T, alicesHome, 1)
			}}
		},
	}
}

// arrives returns how many tokens the copy of a write takes. api changes the process's API, unless it is nil.
func arrives(
	t *testing.T, write func(*twice) delivered, api func(wire.API) wire.API, between int,
) (took, want int64) {
	t.Helper()
	e := newEngine(t)
	client, w := e.withNetwork()
	f := &twice{w: w, api: client}
	if api != nil {
		f.api = api(client)
	}
	f.script = script{t, e, e.demo(t, f.api)}
	f.other = script{t, e, e.demo(t, e.client)}
	done := write(f)
	if done.events == nil {
		done.events = f.demo.events
	}
	if paths := done.Paths; len(paths) == 0 || paths[len(paths)-1] != done.path {
		t.Errorf("calls to the store: %q, want %q at the end", paths, done.path)
	}
	if between > 0 {
		if done.others == nil {
			done.others = func() { f.other.acquire(1, 0) }
		}
		done.others()
	}
	before := f.consumed()
	w.arrive(t)
	return f.consumed() - before, done.takes[between]
}

// TestArrivesTwice has the network deliver a copy of each kind of write, while it is the bucket's last one,
// and after another process has written.
func TestArrivesTwice(t *testing.T) {
	for name, write := range deliveries() {
		for between, when := range []string{"as the last write", "after another"} {
			t.Run(name+"/"+when, func(t *testing.T) {
				if took, want := arrives(t, write, nil, between); took != want {
					t.Errorf("the copy takes %d tokens, want %d", took, want)
				}
			})
		}
	}
}

// unguarded sends give-backs without the guard that they are on top of the write that their process knows.
type unguarded struct{ wire.API }

func (c unguarded) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	bare := *in
	bare.ConditionExpression = new(strings.Replace(*in.ConditionExpression, " AND op = :op0", "", 1))
	bare.ExpressionAttributeValues = maps.Clone(in.ExpressionAttributeValues)
	delete(bare.ExpressionAttributeValues, ":op0")
	return c.API.UpdateItem(ctx, &bare, opts...)
}

// TestArrivesTwiceIsSeen: without that guard, copies of give-backs forge what they give back.
func TestArrivesTwiceIsSeen(t *testing.T) {
	all := deliveries()
	for name, forges := range map[string]int64{
		"release": 10, "settle for less": 6, "settle for less of one limit and more of another": 6,
		"settle with the next retry": 4, "settle with the next normal": 0,
	} {
		t.Run(name, func(t *testing.T) {
			took, _ := arrives(t, all[name], func(api wire.API) wire.API { return unguarded{api} }, 1)
			if took != -forges {
				t.Errorf("the copy takes %d tokens, want %d", took, -forges)
			}
		})
	}
}

// TestGiveBackGuardRests: a guarded give-back that meets another process's write costs a write more, once in
// ten minutes.
func TestGiveBackGuardRests(t *testing.T) {
	e := newEngine(t)
	e.put(t, half().Item(t))
	s, other := script{t, e, e.demo(t, e.client)}, script{t, e, e.demo(t, e.client)}
	meets := func(calls ...string) {
		t.Helper()
		lease := s.acquire(2, 0)
		s.demo.Paths = nil
		other.acquire(1, 0)
		s.settle(lease, 1, 0)
		s.demo.calls(t, calls...)
	}
	meets("adjust refused", "adjust applied")
	meets("adjust applied")
	e.clock.set(10*60_000 - 1)
	meets("adjust applied")
	e.clock.set(10 * 60_000)
	meets("adjust refused", "adjust applied")
}
