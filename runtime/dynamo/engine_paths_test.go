package dynamo

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/internal/item"

	limits "github.com/sluice-go/sluice/generated"
)

var alice = limits.User{ID: "1"}

// script is what a path's test does: it acquires at the instant that the clock stands at.
type script struct {
	*testing.T
	*engine
	demo demo
}

func (s script) acquire(rpm, tpm int64) *limits.GPT4Lease {
	s.Helper()
	lease, err := s.demo.GPT4.Acquire(s.Context(), alice, limits.GPT4Cost{RPM: rpm, TPM: tpm})
	if err != nil {
		s.Fatal(err)
	}
	return lease
}

func (s script) settle(lease *limits.GPT4Lease, rpm, tpm int64) {
	s.Helper()
	if err := lease.Settle(s.Context(), limits.GPT4Cost{RPM: rpm, TPM: tpm}); err != nil {
		s.Fatal(err)
	}
}

// TestPaths runs each write path on the engine: the bucket before, what is done, and the bucket after with
// all its attributes. A user has 100 rpm (5 millitokens every 3 ms) and 10,000 tpm with a burst of 15,000.
// From empty they are full after 60 s and 90 s: a ttl is 180 s after its write unless there is debt.
func TestPaths(t *testing.T) {
	half := &row{CV: 1, TTL: 180, Op: "before", Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)}
	for name, test := range map[string]struct {
		before *row
		do     func(script)
		calls  []string
		after  row
	}{
		"create": {
			do:    func(s script) { s.acquire(50, 5000) },
			calls: []string{"read missing", "create applied"},
			after: row{CV: 1, TTL: 180, Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)},
		},
		"create with per_call and the whole burst": {
			do:    func(s script) { s.acquire(0, 15_000) },
			calls: []string{"read missing", "create applied"},
			after: row{CV: 1, TTL: 180, Limits: holds(99_000, 1000, 0, 15_000_000)},
		},
		"retry": {
			before: half,
			do:     func(s script) { s.clock.set(1000); s.acquire(3, 0) },
			calls:  []string{"read found", "retry applied"},
			after:  row{CV: 1, TTL: 181, Limits: holds(47_000, 53_000, 10_000_000, 5_000_000)},
		},
		"normal": {
			before: half,
			do:     func(s script) { s.clock.set(2000); s.acquire(51, 0) },
			calls:  []string{"read found", "normal applied"},
			after:  row{RF: 2000, CV: 1, TTL: 182, Limits: holds(2_333, 101_000, 10_333_333, 5_000_000)},
		},
		"normal, clamped": {
			before: &row{CV: 1, Op: "before", Limits: holds(99_000, 1000, 15_000_000, 0)},
			do:     func(s script) { s.clock.set(10_000); s.acquire(10, 1000) },
			calls:  []string{"read found", "normal applied"},
			after:  row{RF: 10_000, CV: 1, TTL: 190, Limits: holds(90_000, 11_000, 14_000_000, 1_000_000)},
		},
		"normal, cut to the burst after a release": {
			before: &row{CV: 1, Op: "before", Limits: holds(149_000, 1000, 15_000_000, 0)},
			do:     func(s script) { s.clock.set(1000); s.acquire(1, 0) },
			calls:  []string{"read found", "normal applied"},
			after:  row{RF: 1000, CV: 1, TTL: 181, Limits: holds(99_000, 2000, 15_000_000, 0)},
		},
		"normal with a clock behind rf": {
			before: &row{RF: 5000, CV: 1, Op: "before", Limits: holds(149_000, 1000, 15_000_000, 0)},
			do:     func(s script) { s.acquire(1, 0) },
			calls:  []string{"read found", "normal applied"},
			after:  row{RF: 5000, CV: 1, TTL: 185, Limits: holds(99_000, 2000, 15_000_000, 0)},
		},
		"settle down": {
			before: half,
			do: func(s script) {
				lease := s.acquire(10, 5000)
				s.clock.set(1000)
				s.settle(lease, 4, 1000)
			},
			calls: []string{"read found", "retry applied", "adjust applied"},
			after: row{CV: 1, TTL: 181, Limits: holds(46_000, 54_000, 9_000_000, 6_000_000)},
		},
		"release": {
			before: half,
			do: func(s script) {
				lease := s.acquire(10, 5000)
				s.clock.set(1000)
				lease.Release(s.Context())
			},
			calls: []string{"read found", "retry applied", "adjust applied"},
			after: row{CV: 1, TTL: 181, Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)},
		},
		"release above the burst": {
			before: &row{CV: 1, Op: "before", Limits: holds(99_000, 1000, 15_000_000, 0)},
			do: func(s script) {
				lease := s.acquire(50, 0)
				s.clock.set(60_000)
				s.acquire(100, 0) // claims a clamped refill
				lease.Release(s.Context())
				s.clock.set(61_000)
				lease = s.acquire(1, 0) // normal: 50,000 + 1,666 less 1,000
				lease.Release(s.Context())
			},
			calls: []string{"read found", "retry applied", "normal applied", "adjust applied", "retry applied",
				"adjust applied"},
			after: row{RF: 60_000, CV: 1, TTL: 241, Limits: holds(50_000, 101_000, 15_000_000, 0)},
		},
		"settle to what it cost": {
			before: half,
			do:     func(s script) { s.settle(s.acquire(10, 5000), 10, 5000) },
			calls:  []string{"read found", "retry applied"},
			after:  row{CV: 1, TTL: 180, Limits: holds(40_000, 60_000, 5_000_000, 10_000_000)},
		},
		// 280,000 millitokens from full, at 100,000 a minute: 168 s from 1 s on.
		"settle up by retry, into debt": {
			before: half,
			do: func(s script) {
				lease := s.acquire(10, 0)
				s.clock.set(1000)
				s.settle(lease, 230, 0)
			},
			calls: []string{"read found", "retry applied", "settle applied"},
			after: row{CV: 1, TTL: 1 + 2*168, Limits: holds(-180_000, 280_000, 10_000_000, 5_000_000)},
		},
		"settle up by normal": {
			do: func(s script) {
				lease := s.acquire(1, 0)
				s.clock.set(10_000)
				s.settle(lease, 5, 0)
			},
			calls: []string{"read missing", "create applied", "settle applied"},
			after: row{RF: 10_000, CV: 1, TTL: 190, Limits: holds(96_000, 5000, 15_000_000, 0)},
		},
		// 299,000 from full: 179.4 s from 10 s on, twice that, rounded up.
		"settle up by normal, into debt": {
			do: func(s script) {
				lease := s.acquire(1, 0)
				s.clock.set(10_000)
				s.settle(lease, 300, 0)
			},
			calls: []string{"read missing", "create applied", "settle applied"},
			after: row{RF: 10_000, CV: 1, TTL: 369, Limits: holds(-199_000, 300_000, 15_000_000, 0)},
		},
		"settle up in one limit and down in the other": {
			before: half,
			do: func(s script) {
				lease := s.acquire(10, 5000)
				s.clock.set(1000)
				s.settle(lease, 15, 2000)
			},
			calls: []string{"read found", "retry applied", "settle applied"},
			after: row{CV: 1, TTL: 181, Limits: holds(35_000, 65_000, 8_000_000, 7_000_000)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			if test.before != nil {
				e.put(t, test.before.Item(t))
			}
			s := script{t, e, e.demo(t, e.client)}
			test.do(s)
			s.demo.calls(t, test.calls...)
			e.stored(t, test.after)
		})
	}
}

// TestItem holds a stored bucket, all types included, to what attributevalue makes of a struct written by
// hand, and reads it back by the generated unmarshaler and by attributevalue.
func TestItem(t *testing.T) {
	type attributes struct {
		PK, SK, GSI2PK, GSI2SK string

		Entity   string `dynamodbav:"entity_id"`
		Resource string `dynamodbav:"resource"`
		Refilled int64  `dynamodbav:"rf"`
		Version  int64  `dynamodbav:"cv"`
		TTL      int64  `dynamodbav:"ttl"`
		Op       string `dynamodbav:"op"`
		RPMtk    int64  `dynamodbav:"b_rpm_tk"`
		RPMcp    int64  `dynamodbav:"b_rpm_cp"`
		RPMbx    int64  `dynamodbav:"b_rpm_bx"`
		RPMra    int64  `dynamodbav:"b_rpm_ra"`
		RPMrp    int64  `dynamodbav:"b_rpm_rp"`
		RPMtc    int64  `dynamodbav:"b_rpm_tc"`
		TPMtk    int64  `dynamodbav:"b_tpm_tk"`
		TPMcp    int64  `dynamodbav:"b_tpm_cp"`
		TPMbx    int64  `dynamodbav:"b_tpm_bx"`
		TPMra    int64  `dynamodbav:"b_tpm_ra"`
		TPMrp    int64  `dynamodbav:"b_tpm_rp"`
		TPMtc    int64  `dynamodbav:"b_tpm_tc"`
	}
	e := newEngine(t)
	script{t, e, e.demo(t, e.client)}.acquire(7, 1200)
	got := e.get(t, item.BucketKey("user-1", "gpt-4"))
	want := attributes{
		PK: "ENTITY#user-1", SK: "#BUCKET#gpt-4", GSI2PK: "RESOURCE#gpt-4", GSI2SK: "BUCKET#user-1",
		Entity: "user-1", Resource: "gpt-4",
		Refilled: 1_800_000_000_000, Version: 100_000_000_000_000, TTL: 1_800_000_180,
		RPMtk: 93_000, RPMcp: 100_000, RPMbx: 100_000, RPMra: 100_000, RPMrp: 60_000, RPMtc: 7000,
		TPMtk: 13_800_000, TPMcp: 10_000_000, TPMbx: 15_000_000, TPMra: 10_000_000, TPMrp: 60_000, TPMtc: 1_200_000,
	}
	var back attributes
	if err := attributevalue.UnmarshalMap(got, &back); err != nil {
		t.Fatal(err)
	}
	want.Op = back.Op
	if want != back {
		t.Errorf("attributevalue reads\n%+v\nwant\n%+v", back, want)
	}
	marshaled, err := attributevalue.MarshalMap(want)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(marshaled), plain(got)); diff != "" {
		t.Errorf("- attributevalue, + stored:\n%s", diff)
	}
	var b limits.GPT4Bucket
	if err := b.UnmarshalItem(got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(marshaled), plain(b.MarshalItem())); diff != "" {
		t.Errorf("- attributevalue, + read and marshaled by the generated code:\n%s", diff)
	}
}

// TestOpIsNew shows that each logical write has an op of its own.
func TestOpIsNew(t *testing.T) {
	e := newEngine(t)
	s := script{t, e, e.demo(t, e.client)}
	seen := map[string]bool{}
	look := func() {
		t.Helper()
		op := plain(e.get(t, item.BucketKey("user-1", "gpt-4")))["op"]
		if seen[op] {
			t.Errorf("op %s for a second time", op)
		}
		seen[op] = true
	}
	lease := s.acquire(10, 10)
	look()
	s.acquire(20, 10)
	look()
	s.settle(lease, 5, 5)
	look()
}

// TestRepair: a process with a stale image writes to a bucket that another has driven into debt. The ttl that
// it computed from the old balance is repaired.
func TestRepair(t *testing.T) {
	e := newEngine(t)
	e.put(t, row{CV: 1, TTL: 180, Op: "before", Limits: holds(50_000, 50_000, 10_000_000, 5_000_000)}.Item(t))
	stale := script{t, e, e.demo(t, e.client)}
	first, second := stale.acquire(1, 0), stale.acquire(1, 0)
	other := script{t, e, e.demo(t, e.client)}
	debtor := other.acquire(1, 0)
	stale.demo.calls(t, "read found", "retry applied", "retry applied")
	first.Release(context.Background())
	stale.demo.calls(t, "adjust refused", "adjust applied") // from now on, others are known to write
	other.settle(debtor, 500, 0)
	second.Release(context.Background())
	stale.demo.calls(t, "adjust applied", "repair applied")
	// 50,000 less 500,000: 550,000 from full are 330 s.
	e.stored(t, row{CV: 1, TTL: 2 * 330, Limits: holds(-450_000, 550_000, 10_000_000, 5_000_000)})
}
