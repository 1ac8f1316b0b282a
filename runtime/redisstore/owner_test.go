package redisstore

import (
	"testing"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/store"
)

// ownedBy returns the demonstration's resource as the limits.yaml of an owner has it.
func ownedBy(owner string) *definition {
	def := gpt4()
	spec := *def.spec
	spec.Owner = owner
	def.spec = &spec
	return def
}

// TestOwner: Check records the owner under the prefix, accepts it from then on, and refuses another owner.
// The control is another prefix.
func TestOwner(t *testing.T) {
	s := newServer(t)
	client := s.client(t)
	check := func(owner string) error { return s.process(t, client, ownedBy(owner)).Check(t.Context()) }
	for range 2 {
		if err := check("acme"); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := client.Get(t.Context(), s.prefix+"#owner").Result(); got != "acme" || err != nil {
		t.Errorf("recorded %q, %v", got, err)
	}
	want := errtext.Of(store.OtherOwner("Redis under the prefix \""+s.prefix+"\"", "acme", "beta"))
	if err := check("beta"); errtext.Of(err) != want || !isA[*runtime.SetupError](err) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	commands := New(client, Prefix(s.prefix))
	err := CheckOwner(t.Context(), commands, "beta")
	if errtext.Of(err) != want || !isA[*runtime.SetupError](err) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
	if err := CheckOwner(t.Context(), commands, "acme"); err != nil {
		t.Error(err)
	}
	s.prefix += "other:"
	if err := CheckOwner(t.Context(), New(client, Prefix(s.prefix)), "beta"); err != nil {
		t.Error(err)
	}
	if n, err := client.Exists(t.Context(), s.prefix+"#owner").Result(); n != 0 || err != nil {
		t.Errorf("CheckOwner has recorded %d owners, %v", n, err)
	}
	if err := check("beta"); err != nil {
		t.Error(err)
	}
}
