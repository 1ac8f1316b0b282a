package runtime_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// world is gpt4, shared by three regions.
func world() definition {
	def := gpt4()
	def.spec.Regions = &store.Regions{Names: []string{"a", "b", "c"}, Floor: 10, Window: 10 * time.Second}
	return def
}

// TestExplainRegions: without a quota in force the floor decides, of what the kind and the schema have for
// all regions. An operator's override always decides the limits that it has.
func TestExplainRegions(t *testing.T) {
	type explained = runtime.Explained[numbers]
	now := time.Now().UnixMilli()
	alive := store.Heartbeat{Epoch: 3, Since: now, Expires: now + time.Hour.Milliseconds()}
	closed := &runtime.Rate{Burst: 1, Refill: 1, Every: time.Minute}
	floor := explained{At: "floor", Limits: numbers{rate(6), rate(600)}}
	schema := explained{At: "schema", Limits: numbers{rate(60), rate(6000)}}
	quota := store.Stored{At: "user-1", Epoch: 3, Limits: []*bucket.Limit{per(20), per(2000)}}
	all := func(l explained) explained { l.Wins = []string{"rpm", "tpm"}; return l }
	for name, test := range map[string]struct {
		beat   store.Heartbeat
		stored []store.Stored
		want   []explained
	}{
		"nothing": {alive, nil, []explained{{At: "user-1"}, all(floor), {At: "user"}, schema}},
		"a quota": {alive, []store.Stored{quota}, []explained{
			{At: "user-1", Limits: numbers{rate(20), rate(2000)}, Managed: true, Wins: []string{"rpm", "tpm"}}, floor,
			{At: "user"}, schema}},
		"a quota that is not in force": {store.Heartbeat{Epoch: 3, Since: now - 2, Expires: now - 1},
			[]store.Stored{quota}, []explained{
				{At: "user-1", Limits: numbers{rate(20), rate(2000)}, Managed: true}, all(floor), {At: "user"}, schema}},
		"a quota of another epoch": {store.Heartbeat{Epoch: 4, Since: now, Expires: alive.Expires},
			[]store.Stored{quota}, []explained{
				{At: "user-1", Limits: numbers{rate(20), rate(2000)}, Managed: true}, all(floor), {At: "user"}, schema}},
		"an operator's": {store.Heartbeat{}, []store.Stored{{At: "user-1", Limits: []*bucket.Limit{nil, per(7)}},
			{At: "user", Limits: []*bucket.Limit{per(2), nil}}}, []explained{
			{At: "user-1", Limits: numbers{TPM: rate(7)}, Wins: []string{"tpm"}},
			{At: "floor", Limits: numbers{closed, rate(600)}, Wins: []string{"rpm"}},
			{At: "user", Limits: numbers{RPM: rate(2)}}, schema}},
	} {
		t.Run(name, func(t *testing.T) {
			b := runtime.NewBuilder(&fake{overrides: &overrides{listed: test.stored, beat: test.beat}})
			def := world()
			runtime.Bind[entity](b, def, toVector, fromVector)
			config := runtime.BindConfig[entity](b, def, toVector, toLimits, fromLimits)
			if _, err := b.Limiter(); err != nil {
				t.Fatal(err)
			}
			got, err := config.Explain(t.Context(), user{"1"})
			check(t, err, "")
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("explained (-want +got):\n%s", diff)
			}
			for o, err := range config.All(t.Context()) {
				check(t, err, "")
				equal(t, o.At+" is managed", o.Managed, o.At == "user-1" && test.stored[0].Epoch > 0)
			}
		})
	}
}

// TestRefuseExceedsQuota: what a quota will never hold is refused for a window, and so is anything of a
// closed one, whatever its balance.
func TestRefuseExceedsQuota(t *testing.T) {
	img := &bucket.Image{Refilled: 0, Missing: make([]bool, 2), Balances: bucket.Full([]bucket.Limit{
		bucket.Per(60, time.Minute).Quota(20), bucket.Per(6000, time.Minute).Quota(0),
	})}
	for _, test := range []struct {
		cost []int64
		want string
	}{
		{[]int64{20_000, 0}, ""},
		{[]int64{21_000, 0}, "denied gpt-4 user-1 rpm 20/21 10s"},
		{[]int64{1000, 1000}, "denied gpt-4 user-1 tpm 0/1 10s"},
	} {
		denied := store.Refuse(nil, world().spec, "user-1", img, test.cost, 0)
		switch {
		case denied == nil:
			equal(t, "denied", "", test.want)
		default:
			check(t, denied, test.want)
		}
	}
	if denied := store.Refuse(nil, gpt4().spec, "user-1", img, []int64{1000, 1000}, 0); denied != nil {
		t.Errorf("%v, where no regions share", denied)
	}
}
