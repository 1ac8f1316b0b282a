package images_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/region/images"
	"github.com/sluice-go/sluice/runtime/store"
)

// at is an image of one limit, of which so much was consumed at rf.
func at(rf, consumed int64) *bucket.Image {
	return &bucket.Image{Refilled: rf, Extra: []bucket.Named{{Name: "rpm",
		Balance: bucket.Balance{Consumed: consumed}}}}
}

// table lists what is in it.
type table map[string]*bucket.Image

var errTable = errors.New("no answer")

func (t table) Each(_ context.Context, _ string, f func(string, *bucket.Image)) error {
	if t == nil {
		return errTable
	}
	for entity, img := range t {
		f(entity, img)
	}
	return nil
}

// specs are of one resource that regions divide, and one that they do not.
func specs() []*store.Spec {
	return []*store.Spec{{Resource: "shared", Regions: &store.Regions{}}, {Resource: "own"}}
}

// TestOrder: the image of the last write stays, in whatever order records come.
func TestOrder(t *testing.T) {
	k := images.Key{Resource: "shared", Entity: "user-1"}
	for name, test := range map[string]struct {
		play func(m *images.Images)
		want int64 // consumed; -1 for no bucket
	}{
		"in order": {func(m *images.Images) {
			m.Put("shared", "user-1", "99", at(10, 1))
			m.Put("shared", "user-1", "100", at(10, 2))
		}, 2},
		"again": {func(m *images.Images) {
			m.Put("shared", "user-1", "0100", at(10, 2))
			m.Put("shared", "user-1", "99", at(10, 1))
		}, 2},
		"an older rf of a later shard": {func(m *images.Images) {
			m.Put("shared", "user-1", "100", at(10, 2))
			m.Put("shared", "user-1", "200", at(9, 1))
		}, 2},
		"a newer rf of a shard with lower numbers": {func(m *images.Images) {
			m.Put("shared", "user-1", "100", at(10, 1))
			m.Put("shared", "user-1", "2", at(11, 2))
		}, 2},
		"deleted": {func(m *images.Images) {
			m.Put("shared", "user-1", "1", at(10, 1))
			m.Delete("shared", "user-1", "2", at(10, 1))
		}, -1},
		"made again, and the deletion comes again": {func(m *images.Images) {
			m.Put("shared", "user-1", "1", at(10, 1))
			m.Delete("shared", "user-1", "2", at(10, 1))
			m.Put("shared", "user-1", "3", at(20, 5))
			m.Delete("shared", "user-1", "2", at(10, 1))
		}, 5},
		"of another resource": {func(m *images.Images) { m.Put("own", "user-1", "1", at(10, 1)) }, -1},
	} {
		m := images.New(specs())
		test.play(m)
		got := m.Current(k)
		if (got == nil) != (test.want < 0) || got != nil && got.Extra[0].Consumed != test.want {
			t.Errorf("%s: %v, want %d consumed", name, got, test.want)
		}
		if got := m.Current(images.Key{Resource: "own", Entity: "user-1"}); got != nil {
			t.Errorf("%s: %v of a resource that is not shared", name, got)
		}
	}
}

// TestRead: a full read replaces what the stream did not have, and nothing that is of a later write. Only
// what it changes counts as missed, unless the stream tells of it in time.
func TestRead(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	m := images.New(specs())
	m.Reading([]string{"a"})
	m.Heard("a", now, time.Time{})
	read := func(why images.Reason, found table) {
		t.Helper()
		if err := m.Read(t.Context(), found, specs()[:1], now, why); err != nil {
			t.Fatal(err)
		}
	}
	read(images.Start, table{"same": at(1, 1), "missed": at(1, 1), "gone": at(1, 1), "late": at(1, 1)})
	if n := m.Missed(now.Add(time.Hour), time.Minute); n != 0 {
		t.Errorf("%d missed at the start", n)
	}
	m.Put("shared", "newer", "7", at(9, 9))
	read(images.Audit, table{"same": at(1, 1), "missed": at(2, 2), "newer": at(8, 8), "late": at(3, 3)})
	for entity, want := range map[string]int64{"same": 1, "missed": 2, "newer": 9, "late": 3} {
		if got := m.Current(images.Key{Resource: "shared", Entity: entity}); got == nil ||
			got.Extra[0].Consumed != want {
			t.Errorf("%s: %v, want %d", entity, got, want)
		}
	}
	if got := m.Current(images.Key{Resource: "shared", Entity: "gone"}); got != nil {
		t.Errorf("gone: %v", got)
	}
	m.Put("shared", "late", "8", at(3, 3))
	if n := m.Missed(now.Add(time.Second), time.Minute); n != 0 {
		t.Errorf("%d missed before records can have come", n)
	}
	if n := m.Missed(now.Add(time.Hour), time.Minute); n != 2 {
		t.Errorf("%d missed, want missed and gone", n)
	}
	if err := m.Read(t.Context(), table(nil), specs()[:1], now, images.Audit); !errors.Is(err, errTable) {
		t.Error(err)
	}
}

// TestDue: everything is read at the start, again once the stream is followed, after losses, and in audits.
// While the stream is silent or behind, nothing is, and the error says why.
func TestDue(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_000)
	m := images.New(specs())
	due := func(want images.Reason, wrong string) {
		t.Helper()
		why, err := m.Due(now, time.Hour, time.Minute)
		if why != want || (err == nil) != (wrong == "") || err != nil && err.Error() != wrong {
			t.Errorf("%q, %v; want %q, %q", why, err, want, wrong)
		}
		if why != "" {
			if err := m.Read(t.Context(), table{}, specs()[:1], now, why); err != nil {
				t.Fatal(err)
			}
		}
	}
	due(images.Start, "")
	due("", "the table's stream: it has not replied yet; rates stay as they were")
	m.Reading([]string{"a"})
	due("", "the table's stream: it has not replied yet; rates stay as they were")
	m.Heard("a", now, time.Time{})
	due(images.Start, "")
	due("", "")
	m.Lost()
	due(images.Gap, "")
	now = now.Add(2 * time.Minute)
	due("", "the table's stream: its shard a has not replied for 2m0s; rates stay as they were")
	m.Heard("a", now, now.Add(-3*time.Minute))
	due("", "the table's stream: what was read of its shard a is 3m0s old; rates stay as they were")
	m.Heard("a", now, now)
	due("", "")
	now = now.Add(time.Hour)
	m.Heard("a", now, time.Time{})
	due(images.Audit, "")
	m.Reading([]string{"a", "b"}) // a child
	due("", "the table's stream: it has not replied yet; rates stay as they were")
}
