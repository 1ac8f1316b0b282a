package dynamo

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// puts counts writes of whole items.
type puts struct {
	API

	n int
}

// PutItem implements API.
func (p *puts) PutItem(ctx context.Context, in *dynamodb.PutItemInput, opts ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	p.n++
	return p.API.PutItem(ctx, in, opts...)
}

// TestBeatOfRegion: a heartbeat says whose it is, and takes no other region's place while that is alive; one that does not say is taken
// over. Each takes one write.
func TestBeatOfRegion(t *testing.T) {
	of := func(region string, epoch, expires int64) runtime.Heartbeat {
		return runtime.Heartbeat{Region: region, Epoch: epoch, Expires: t0 + expires}
	}
	for name, test := range map[string]struct {
		before  runtime.Heartbeat
		next    runtime.Heartbeat
		refused bool
	}{
		"its own":             {of("eu", 1, 35_000), of("eu", 1, 45_000), false},
		"one that is alive":   {of("us", 1, 35_000), of("eu", 2, 45_000), true},
		"one that has ended":  {of("us", 1, 15_000), of("eu", 2, 45_000), false},
		"an older sync's":     {of("", 1, 35_000), of("eu", 1, 45_000), false},
		"by an older sync":    {of("us", 1, 35_000), of("", 2, 45_000), false},
		"alive, of its epoch": {of("us", 1, 35_000), of("eu", 1, 45_000), true},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.clock.set(5000)
			if err := e.regional(e.client, 0).Beat(t.Context(), test.before); err != nil {
				t.Fatal(err)
			}
			e.clock.set(15_000)
			api := &puts{API: e.client}
			r := e.regional(api, 0)
			was, want := mustRead(t, r), test.next
			if was.Region != test.before.Region {
				t.Errorf("read back %+v, want the region %q", was, test.before.Region)
			}
			err := r.Beat(t.Context(), test.next)
			if isA[*runtime.SetupError](err) != test.refused || err != nil && !test.refused {
				t.Errorf("%v, want it refused: %v", err, test.refused)
			}
			got, n := mustRead(t, r), 1
			if want.Since = got.Since; test.refused {
				want, n = was, 0
			}
			if got != want || api.n != n {
				t.Errorf("stored %+v in %d writes, want %+v", got, api.n, want)
			}
		})
	}
	item := beatKey()
	item["epoch"], item["since"], item["exp"], item[regionAttribute] = codec.N(1), codec.N(1), codec.N(2), codec.N(3)
	if _, err := decodeBeat(item, 1); !isA[*runtime.SetupError](err) {
		t.Errorf("a number for a region: %v", err)
	}
}
