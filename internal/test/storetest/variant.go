package storetest

import (
	"testing"
	"time"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/definitions"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// UserRPM and UserTPM are the limits of a user in the demonstration.
var (
	UserRPM = bucket.Per(100, time.Minute)
	UserTPM = bucket.Per(10_000, time.Minute).WithBurst(15_000)
)

// Holds returns the balances of gpt-4 for a user: tokens and consumption of rpm, then of tpm, in millitokens.
func Holds(rpm, rpmUsed, tpm, tpmUsed int64) map[string]bucket.Balance {
	return map[string]bucket.Balance{
		"rpm": {Limit: UserRPM, Tokens: rpm, Consumed: rpmUsed},
		"tpm": {Limit: UserTPM, Tokens: tpm, Consumed: tpmUsed},
	}
}

// Minute returns one limit of so many tokens a minute: nothing refills between a test's steps.
func Minute(n int64) []bucket.Limit { return []bucket.Limit{bucket.Per(n, time.Minute)} }

// Generated returns the generated code of the demonstration's resources.
func Generated(t testing.TB) (gpt4, embeddings codec.Resource) {
	t.Helper()
	all, err := definitions.ForDynamo(limits.New)
	if err != nil {
		t.Fatal(err)
	}
	return all["gpt-4"], all["embeddings"]
}

// Variant is a generated resource with another specification.
type Variant struct {
	codec.Resource
	Numbers *store.Spec
}

// Spec implements store.Definition.
func (v *Variant) Spec() *store.Spec { return v.Numbers }

// WithNumbers returns the resource as if its schema gave users these limits under that revision.
func WithNumbers(r codec.Resource, revision int64, limits ...bucket.Limit) *Variant {
	spec := *r.Spec()
	spec.Revision = revision
	spec.Kinds = []store.Kind{
		{Name: "user", Prefix: "user-", Limits: limits, PerCall: make([]int64, len(limits))},
	}
	return &Variant{Resource: r, Numbers: &spec}
}

// Family returns the resource as if its schema gave projects and their users these limits.
func Family(r codec.Resource, cascade store.Cascade, project, user []bucket.Limit) *Variant {
	spec := *r.Spec()
	perCall := make([]int64, len(user))
	spec.Cascade = cascade
	spec.Kinds = []store.Kind{
		{Name: "project", Prefix: "project-", Parent: store.NoParent, Limits: project, PerCall: perCall},
		{Name: "user", Prefix: "user-", Parent: 0, Limits: user, PerCall: perCall},
	}
	return &Variant{Resource: r, Numbers: &spec}
}
