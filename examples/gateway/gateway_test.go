package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestMain runs the tests, or the program itself where TestProcess has started this binary.
func TestMain(m *testing.M) {
	if on := os.Getenv(asProgram); on != "" {
		os.Exit(start(os.Args[1:], networks[on]))
	}
	dynamotest.Main(m)
}

// TestExact runs a second of traffic through three gateways. Afterwards the table has as consumed exactly
// what was streamed, and a check of wrong books says so.
func TestExact(t *testing.T) {
	t.Parallel() // it waits, the others reckon
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	if _, err := operator.CreateTable(t.Context(), client, table); err != nil { // its TTL
		t.Fatal(err)
	}
	sim, err := newSimulation(t.Context(), client, tcp("127.0.0.1:0"),
		settings{table: table, duration: time.Second, seed: 7})
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
	if c.admitted == 0 || c.settled == 0 || c.released == 0 {
		t.Errorf("the traffic is incomplete: %+v", c)
	}
	t.Logf("%+v", c) // on a busy machine some calls are contended: they fail, and charge nothing
	// On a slow machine the buckets of embeddings, which live for two seconds, may have expired.
	for _, line := range []string{"\nok: The table charged what passed on the wire, on all ",
		"\nok: Projects have what their users were charged, and budgets the provider's bill: ",
		"\nok: No token was forged: consumed and left are within burst and refill, on all "} {
		if !strings.Contains(out.String(), line) {
			t.Errorf("the report has no %q:\n%s", line, out.String())
		}
	}

	wrong := func(what, message, line string) {
		t.Helper()
		out.Reset()
		if err := sim.check(t.Context(), &out); err == nil || !strings.HasPrefix(err.Error(), message) ||
			!strings.Contains(out.String(), line) {
			t.Errorf("%s pass the check: %v\n%s", what, err, out.String())
		}
	}
	// The error is larger than what one failed call may leave open.
	const many = 100
	// A call of the project's own, which is in the books: users' sums no longer are the project's.
	lab := limits.Project{ID: "lab", Org: limits.Org{ID: "acme"}}
	if _, err := sim.limiters[0].GPT4.Acquire(t.Context(), lab, limits.GPT4Cost{RPM: many}); err != nil {
		t.Fatal(err)
	}
	sim.ledger.change(projectOn(lab), limits.GPT4RPM.String(), func(a *account) { a.settled += many })
	wrong("wrong sums", "1 of 4 sums over users differ", "check: project-lab on gpt-4, rpm: the table has ")

	// Tokens from nowhere: as if the bucket had had less before than it gave out since.
	key := accountKey{projectOn(lab), limits.GPT4RPM.String()}
	stored, err := sim.stored(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	start := stored[key]
	start.Consumed, start.Tokens = 0, 0
	sim.before[key] = start
	wrong("forged tokens", "", "check: project-lab on gpt-4, rpm: consumed and left are ")
	delete(sim.before, key)

	sim.ledger.admit(&sim.tenants[0], limits.GPT4TPM, 1000*many, 1000*many)
	wrong("wrong books", "2 of ", "check: user-alice on gpt-4, tpm: the table has ")
}

// TestModelIsSeeded: the same prompt gives the same reply.
func TestModelIsSeeded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it takes its time
		ask := func(prompt string) (all []string) {
			for text, err := range llm(1)(t.Context(), &chat{MaxTokens: most, Messages: []message{{"user", prompt}}}) {
				all = append(all, fmt.Sprint(text, err))
			}
			return all
		}
		first, again, other := ask("a prompt"), ask("a prompt"), ask("another")
		if !slices.Equal(first, again) || slices.Equal(first, other) {
			t.Errorf("%q, %q and then %q", first, other, again)
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
