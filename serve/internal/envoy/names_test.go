package envoy_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/envoy"
)

const named = `domain: gateway
rules:
  - match: {model: "*", org: "*"}
    acquire: {resource: gateway, name: "{model}", entity: {org: "{org}"}, usage: {output: hits}}
  - match: {org: "*"}
    acquire: {resource: gateway, name: o3, entity: {org: "{org}"}}
unmatched: deny
`

// TestNames: a rule takes the name of a template from the descriptor, or has a fixed one. A name that the
// catalog does not have is refused, whatever the failure policy, as is every request while nobody knows it.
func TestNames(t *testing.T) {
	bubble(t, options{rules: named}, func(r *rig) {
		on, err := r.schema.Resource("gateway")
		if err != nil {
			r.Fatal(err)
		}
		call := func(name string) []string { return []string{"model", name, "org", "7"} }
		r.engine.Faults().Down(true)
		r.fails(codes.Unavailable, "the names of the catalog could not be read: nothing was charged",
			descriptor(call("gpt-5")...))
		r.engine.Faults().Down(false)
		time.Sleep(time.Minute) //nolint:forbidigo // in a bubble
		all := operator.NewCatalog(r.engine.Client(), "limits", time.Now)
		for _, e := range []store.Entry{{Name: "gpt-5", Prices: []int64{1_000_000_000_000}}, {Name: "o3"}} {
			if _, err := all.Set(r.Context(), store.TemplateOf(on.Spec), e); err != nil {
				r.Fatal(err)
			}
		}
		time.Sleep(time.Minute)                                  //nolint:forbidigo // in a bubble
		r.want(ok, hits(3, descriptor(call("gpt-5")...)))        // 3 USD, by the catalog's price
		r.want(ok, descriptor("org", "7"))                       // of o3
		a := r.want(over, hits(3, descriptor(call("gpt-5")...))) // 2 USD are left
		if meta(a, "resource") != "gateway/gpt-5" || meta(a, "limit") != "month" {
			r.Errorf("%v", a.DynamicMetadata)
		}
		r.want(ok, hits(1, descriptor(call("gpt-5")...)))
		a = r.want(over, hits(1, descriptor(call("gpt-5")...)))
		if meta(a, "limit") != "rpm" {
			r.Errorf("%v", a.DynamicMetadata)
		}
		for name, want := range map[string]string{
			"gpt-6": "the catalog does not have the name gpt-6", "": "name is missing", "a#b": "contains '#'",
		} {
			a := r.want(over, descriptor(call(name)...))
			if !strings.Contains(meta(a, "reason"), want) {
				r.Errorf("%q: %v, want %s", name, a.DynamicMetadata, want)
			}
		}
		r.counted(map[envoy.Outcome]int{envoy.Invalid: 3, envoy.Failed: 1, envoy.OverLimit: 2, envoy.OK: 3})
		if strings.Contains(r.log.String(), "gpt-6") {
			r.Errorf("log: %s", &r.log)
		}
	})
}
