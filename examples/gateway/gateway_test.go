package main

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// TestExact runs two seconds of traffic through three limiters. Afterwards the table has as consumed exactly what the
// program settled, and a check of wrong books says so.
func TestExact(t *testing.T) {
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, dynamo.Table)
	if _, err := dynamo.CreateTable(t.Context(), client, table); err != nil { // its TTL
		t.Fatal(err)
	}
	sim, err := newSimulation(t.Context(), client, settings{table: table, duration: 2 * time.Second, seed: 7})
	if err == nil {
		sim.run(t.Context())
		err = sim.close(t.Context())
	}
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := sim.report(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	c := sim.meter.counts()
	if c.admitted == 0 || c.denied == 0 || c.settled == 0 || c.released == 0 {
		t.Errorf("the traffic lacks something: %+v", c)
	}
	t.Logf("%+v", c) // on a busy machine some calls are contended: they fail, and charge nothing
	if !strings.Contains(out.String(), "\ncheck: ok: on all 10 limits ") {
		t.Errorf("the report has no check:\n%s", out.String())
	}

	sim.ledger.admit(&sim.tenants[0], "tpm", 1, 1)
	out.Reset()
	if err := sim.check(t.Context(), &out); err == nil || !strings.HasPrefix(err.Error(), "1 of 10 limits differ ") ||
		!strings.HasPrefix(out.String(), "check: alice, tpm: the table has ") {
		t.Errorf("wrong books pass the check: %v\n%s", err, out.String())
	}
}

// TestModelIsSeeded: the same prompt gives the same answer.
func TestModelIsSeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it takes its time
		prompt := strings.Repeat("word ", 100)
		first, err1 := llm(1)(t.Context(), prompt)
		again, err2 := llm(1)(t.Context(), prompt)
		if first != again || !errors.Is(err1, err2) {
			t.Errorf("%v, %v and then %v, %v", first, err1, again, err2)
		}
	})
}

func TestCalls(t *testing.T) {
	for n, want := range map[int]string{0: "0 calls", 1: "1 call", 2: "2 calls", 1000: "1,000 calls"} {
		if got := calls(n); got != want {
			t.Errorf("calls(%d) = %s, want %s", n, got, want)
		}
	}
}
