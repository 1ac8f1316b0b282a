package httplimit_test

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestShadow: next is called whatever the limits say, and headers tell what these have, as far as that is
// known.
func TestShadow(t *testing.T) {
	const policy = `"rpm";q=100;w=60, "tpm";q=10000;w=60`
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		lim := open(t, limittest.StoreOn(t, engine))
		var shadowed error
		client := limited(t, lim.GPT4.With(runtime.Shadow(true), runtime.OnUnavailable(runtime.Deny)),
			func(_ http.ResponseWriter, r *http.Request) {
				lease := httplimit.Lease[limits.GPT4Cost](r.Context())
				shadowed = lease.Shadowed()
				if err := lease.Settle(r.Context(), limits.GPT4Cost{TPM: 20_000}); err != nil && shadowed != nil {
					t.Error(err)
				}
			}, httplimit.Headers(), httplimit.ReleaseOn(func(int) bool { return true }))
		see := func(query, want string, shown map[string]string) {
			t.Helper()
			r := get(t, client, query)
			said := errtext.Of(shadowed)
			if diff := cmp.Diff(shown, fields(r.Header)); r.StatusCode != 200 || r.body != "" || said != want ||
				diff != "" {
				t.Errorf("%d %s; shadowed %q, want %q; headers (-want +got):\n%s", r.StatusCode, r.body, said, want, diff)
			}
		}
		see("user=1&tpm=14400", "", map[string]string{"RateLimit-Policy": policy,
			"RateLimit": `"rpm";r=99;t=1, "tpm";r=600;t=87`})
		see("user=1&tpm=700", "denied gpt-4 user-1 tpm 0/700 34.2s",
			map[string]string{"RateLimit-Policy": policy, "RateLimit": `"rpm";r=99;t=1, "tpm";r=0;t=120`})
		see("user=1&tpm=15001", "exceeds burst gpt-4 user-1 tpm 15001/15000",
			map[string]string{"RateLimit-Policy": policy, "RateLimit": `"rpm";r=99;t=1, "tpm";r=0;t=120`})
		time.Sleep(90 * time.Second) //nolint:forbidigo // in a bubble
		see("user=1&tpm=9000", "", map[string]string{"RateLimit-Policy": policy,
			"RateLimit": `"rpm";r=99;t=1, "tpm";r=1000;t=84`})
		time.Sleep(time.Hour) //nolint:forbidigo // in a bubble
		engine.Faults().Down(true)
		r := get(t, client, "user=1&tpm=1")
		if down := shadowed; r.StatusCode != 200 || down == nil || len(fields(r.Header)) > 0 {
			t.Errorf("in an outage: %d %v %v", r.StatusCode, down, fields(r.Header))
		}
	})
}
