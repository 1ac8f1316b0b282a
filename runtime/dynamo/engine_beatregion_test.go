package dynamo

import (
	"context"
	"reflect"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// puts counts writes of whole items.
type puts struct {
	wire.API

	n int
}

// PutItem implements API.
func (p *puts) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	p.n++
	return p.API.PutItem(ctx, in, opts...)
}

// TestBeatOfRegion: a heartbeat says whose it is, and takes no other region's place while that is alive; one
// that does not say is taken over. Each takes one write.
func TestBeatOfRegion(t *testing.T) {
	of := func(region string, epoch, expires int64) store.Heartbeat {
		return store.Heartbeat{Region: region, Epoch: epoch, Expires: t0 + expires}
	}
	for name, test := range map[string]struct {
		before store.Heartbeat
		next   store.Heartbeat
		want   error // of its type
	}{
		"its own":             {of("eu", 1, 35_000), of("eu", 1, 45_000), nil},
		"one that is alive":   {of("us", 1, 35_000), of("eu", 2, 45_000), &store.SetupError{}},
		"one that has ended":  {of("us", 1, 15_000), of("eu", 2, 45_000), nil},
		"an older sync's":     {of("", 1, 35_000), of("eu", 1, 45_000), nil},
		"ended, of its epoch": {of("us", 1, 15_000), of("eu", 1, 45_000), &store.ConflictError{}},
		"by an older sync":    {of("us", 1, 35_000), of("", 2, 45_000), nil},
		"alive, of its epoch": {of("us", 1, 35_000), of("eu", 1, 45_000), &store.SetupError{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := newEngine(t)
			e.clock.set(5000)
			if err := e.regional(e.client, 0).PutHeartbeat(t.Context(), test.before); err != nil {
				t.Fatal(err)
			}
			e.clock.set(15_000)
			api := &puts{API: e.client}
			r := e.regional(api, 0)
			was, want := e.heartbeat(t), test.next
			if was.Region != test.before.Region {
				t.Errorf("read back %+v, want the region %q", was, test.before.Region)
			}
			err := r.PutHeartbeat(t.Context(), test.next)
			if reflect.TypeOf(err) != reflect.TypeOf(test.want) {
				t.Errorf("%v, want a %T", err, test.want)
			}
			got, n := e.heartbeat(t), 1
			if want.Since = got.Since; test.want != nil {
				want, n = was, 0
			}
			if got != want || api.n != n {
				t.Errorf("stored %+v in %d writes, want %+v", got, api.n, want)
			}
		})
	}
	item := item.HeartbeatKey()
	item["epoch"], item["since"], item["exp"], item[override.RegionAttribute] = codec.N(
		1,
	), codec.N(
		1,
	), codec.N(
		2,
	), codec.N(
		3,
	)
	if _, err := override.DecodeHeartbeat(item, 1); !isA[*store.SetupError](err) {
		t.Errorf("a number for a region: %v", err)
	}
}
