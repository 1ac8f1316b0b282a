package httplimit_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestWriteHeaders: a proxy's callers get the fields that those of the middleware get.
func TestWriteHeaders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		lim := open(t, limittest.StoreOn(t, memdynamo.New()))
		client := limited(t, lim.GPT4, nothing, httplimit.Headers())
		user := limits.User{ID: "1", Project: limits.Project{ID: "7"}}
		check := func(name string, err error, balances []runtime.Balance, want map[string]string) {
			t.Helper()
			h := http.Header{}
			httplimit.WriteHeaders(h, err, balances)
			if diff := cmp.Diff(want, fields(h)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
		lease, err := lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 14_000})
		if err != nil {
			t.Fatal(err)
		}
		check("admitted", nil, lease.Balances(), map[string]string{
			"RateLimit-Policy": `"rpm";q=100;w=60, "tpm";q=10000;w=60`,
			"RateLimit":        `"rpm";r=99;t=1, "tpm";r=1000;t=84`,
		})
		_, err = lim.GPT4.Acquire(t.Context(), user, limits.GPT4Cost{TPM: 14_000})
		if _, denied := errors.AsType[*runtime.DeniedError](err); !denied {
			t.Fatal(err)
		}
		check("denied", err, lim.GPT4.Lookup(user), fields(get(t, client, "user=1&tpm=14000").Header))
		check("denied, and nothing is known", err, nil, map[string]string{
			"RateLimit": `"tpm";r=1000;t=78`, "Retry-After": "78",
		})
		down := &runtime.UnavailableError{Resource: "gpt-4"}
		check("unavailable", down, nil, map[string]string{"Retry-After": "1"})
		check("another error", errors.New("other"), nil, map[string]string{})
	})
}
