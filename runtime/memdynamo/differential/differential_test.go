package differential_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"pgregory.net/rapid"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

func TestMain(m *testing.M) { dynamotest.Main(m) }

// leastOperations is how many a full run compares at least.
const leastOperations = 20_000

// TestDifferential is the differential test: memdynamo against DynamoDB Local. Its histories are the same in
// every run unless -rapid.seed says otherwise, so that what turns red is what has been changed.
func TestDifferential(t *testing.T) {
	local := dynamotest.Local(t) // before the parallel parts: without it this skips
	if flag.Lookup("rapid.seed").Value.String() == "0" {
		setFlag(t, "rapid.seed", "1")
	}
	seen := newReport()
	t.Run("mixes", func(t *testing.T) {
		for _, m := range mixes {
			t.Run(m.name, func(t *testing.T) {
				t.Parallel()
				check(t.Context(), t, m, &pair{localSide(t, local), memorySide(), seen})
			})
		}
	})
	seen.log(t)
	if t.Failed() || testing.Short() {
		return
	}
	if seen.total < leastOperations {
		t.Errorf("only %d operations ran, want at least %d", seen.total, leastOperations)
	}
	seen.covers(t)
}

// setFlag sets a flag for the time of the test.
func setFlag(t *testing.T, name, value string) {
	t.Helper()
	was := flag.Lookup(name).Value.String()
	if err := flag.Set(name, value); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := flag.Set(name, was); err != nil {
			t.Error(err)
		}
	})
}

// TestLocalAgainstItself holds the comparison to account: it may find nothing where the engine is the same.
func TestLocalAgainstItself(t *testing.T) {
	local := dynamotest.Local(t)
	seen := newReport()
	for _, m := range mixes {
		p := &pair{localSide(t, local), localSide(t, local), seen}
		for seed := range 10 {
			diff, err := p.run(t.Context(), m.histories().Example(seed))
			if err != nil || diff.text != "" {
				t.Fatalf("%v\n%s", err, diff.text)
			}
		}
	}
	seen.log(t)
}

// check runs histories of the mix until one differs.
func check(ctx context.Context, t rapid.TB, m mix, engines *pair) {
	t.Helper()
	histories := m.histories()
	rapid.Check(t, func(rt *rapid.T) {
		diff, err := engines.run(ctx, histories.Draw(rt, "history"))
		if err != nil {
			rt.Fatal(err)
		}
		if diff.text != "" {
			rt.Fatal(diff.text)
		}
	})
}

// pair is the two engines under comparison.
type pair struct {
	truth, ours *side
	seen        *report
}

// run puts both engines through a history, and returns how they differed first. Its text is "" if they did
// not.
func (p *pair) run(ctx context.Context, h history) (parting, error) {
	if err := p.reset(ctx); err != nil {
		return parting{}, err
	}
	for i, o := range h {
		replies, diff, err := p.step(ctx, o)
		if err != nil {
			return parting{}, fmt.Errorf("operation %d, %v: %w", i, o, err)
		}
		p.seen.ran(o, replies)
		if diff.text != "" {
			diff.text = fmt.Sprintf("operation %d differs:\n%v\n%s", i, o, diff.text)
			return diff, nil
		}
		if diff.parted {
			if err := p.reset(ctx); err != nil {
				return parting{}, err
			}
		}
	}
	for _, o := range allTables() {
		if _, diff, err := p.step(ctx, o); err != nil || diff.text != "" {
			diff.text = fmt.Sprintf("the tables differ in the end:\n%v\n%s", o, diff.text)
			return diff, err
		}
	}
	return parting{}, nil
}

// reset gives both engines empty tables.
func (p *pair) reset(ctx context.Context) error {
	return errors.Join(p.truth.reset(ctx), p.ours.reset(ctx))
}

// allTables reads every table and index whole.
func allTables() []operation {
	var ops []operation
	for _, s := range schemas {
		for _, x := range s.indexes {
			in := &dynamodb.ScanInput{TableName: aws.String(s.name)}
			if x.name != "" {
				in.IndexName = aws.String(x.name)
			}
			ops = append(ops, operation{input: in, pages: true})
		}
	}
	return ops
}

// parting is how the replies to one operation differ. If a known difference is whether the operation was
// accepted, the tables may differ from then on, and the history continues with empty ones. Local, too,
// applies some writes before it finds them malformed.
type parting struct {
	text   string
	places []string // where they differ, as places returns them
	parted bool
}

// step puts both engines through one operation.
func (p *pair) step(ctx context.Context, o operation) ([]reply, parting, error) {
	truth, err := p.truth.run(ctx, o)
	if err != nil {
		return nil, parting{}, fmt.Errorf("DynamoDB Local: %w", err)
	}
	ours, err := p.ours.run(ctx, o)
	if err != nil {
		return nil, parting{}, fmt.Errorf("memdynamo: %w", err)
	}
	text := difference(o, truth, ours)
	if text == "" {
		return truth, parting{}, nil
	}
	if ids := explain(o, truth, ours); ids != nil {
		p.seen.explained(ids)
		parted := o.writes() && (failed(truth) != failed(ours) || slices.Contains(ids, "constraints"))
		return truth, parting{parted: parted}, nil
	}
	return truth, parting{text: text, places: places(o, truth, ours)}, nil
}

// failed tells whether an exception came.
func failed(replies []reply) bool { return replies[len(replies)-1].Code != "" }
