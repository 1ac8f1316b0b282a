package evolution_test

import (
	"testing"
	"time"

	v1 "github.com/sluice-go/sluice/internal/test/evolution/v1/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo"
)

// override has an operator, who knows the first version, give user a so many rpm.
func (w *world) override(t *testing.T, rpm int64) {
	t.Helper()
	l, err := v1.New(dynamo.New(w.client, w.table), runtime.WithClock(w))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	at := l.Config.Chat.Entity(v1.User{ID: "a", Project: v1.Project{ID: "p"}})
	if _, err := at.Set(t.Context(), v1.ChatLimits{RPM: &runtime.Rate{Capacity: rpm}}, ""); err != nil {
		t.Fatal(err)
	}
}

// charged holds user a's rpm to a rate a minute, 0 for none, after a new process of a version has charged it.
func (w *world) charged(t *testing.T, version int, rpm int64) {
	t.Helper()
	take(t, w.deploy(t, version), cost{rpm: 1, tpm: 1})
	want := bucket.Limit{}
	if rpm > 0 {
		want = bucket.Per(rpm, time.Minute)
	}
	if got := w.state(t, "user-a").balances["rpm"].Limit; got != want {
		t.Errorf("under version %d rpm has %+v, want %+v", version, got, want)
	}
}

// TestOverrideOfRemoved: what overrides a limit is no bucket's. It stays when the limit is removed, and is in
// force again with the name.
func TestOverrideOfRemoved(t *testing.T) {
	w := newWorld(t)
	w.override(t, 7)
	w.charged(t, 1, 7)
	w.charged(t, 3, 0)
	w.charged(t, 4, 7)
}

// TestOverrideAfterRollBack: buckets shaped by a newer version take no override from an older one, which does
// not know all that is in force. The next process of the newer version gives it to them.
func TestOverrideAfterRollBack(t *testing.T) {
	w := newWorld(t)
	w.charged(t, 2, 60)
	w.override(t, 7)
	w.charged(t, 1, 60)
	w.charged(t, 2, 7)
	w.charged(t, 1, 7)
}
