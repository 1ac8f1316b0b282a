package table

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

func TestRecords(t *testing.T) {
	first, second := order("ann", 1), order("ann", 1)
	second["note"] = value.String("quick")
	keys := text(keysOnly(orders.Key, first))
	for view, want := range map[string][3]record{
		"KEYS_ONLY": {{}, {}, {}},
		"NEW_IMAGE": {{after: text(first)}, {after: text(second)}, {}},
		"OLD_IMAGE": {{}, {before: text(first)}, {before: text(second)}},
		"NEW_AND_OLD_IMAGES": {{after: text(first)}, {before: text(first), after: text(second)},
			{before: text(second)}},
	} {
		table := New(orders)
		put(table, order("bob", 1)) // no stream yet
		table.EnableStream(view, 1, start)
		put(table, first)
		put(table, order("ann", 1)) // changes nothing
		put(table, second)
		table.Set(Change{At: start, Key: table.KeyOf(first), Service: true})
		table.Set(Change{At: start, Key: table.KeyOf(first)}) // is not there
		var got []record
		for _, r := range table.Stream().Shards[0].Read(0, 10) {
			got = append(got, record{r.At, r.Event, text(r.Keys), text(r.Old), text(r.New), r.Service})
		}
		for i, event := range []string{"INSERT", "MODIFY", "REMOVE"} {
			want[i].event = event
			want[i].keys, want[i].at, want[i].service = keys, start, i == 2
		}
		if diff := cmp.Diff(want[:], got, cmp.AllowUnexported(record{})); diff != "" {
			t.Errorf("%s: %s", view, diff)
		}
	}
}

// TestSplit says that the changes of a key are in one shard and then in its child, and that both children
// have their share.
func TestSplit(t *testing.T) {
	table := New(orders)
	table.EnableStream("KEYS_ONLY", 2, start)
	const keys, rounds = 400, 4
	for round := range rounds {
		for i := range keys {
			put(table, order(fmt.Sprint("user", i), round))
		}
		if round+1 < rounds {
			table.Stream().Split(start)
		}
	}
	s := table.Stream()
	byKey := map[value.Value][]*Shard{}
	open := 0
	for _, shard := range s.Shards {
		if s.Shard(shard.ID) != shard {
			t.Errorf("another shard is %s", shard.ID)
		}
		if shard.Last == 0 {
			open++
		}
		records := shard.Read(0, 1000)
		for _, r := range records {
			byKey[r.Keys["user"]] = append(byKey[r.Keys["user"]], shard)
		}
		expected := keys / 2
		for parent := s.Shard(shard.Parent); parent != nil; parent = s.Shard(parent.Parent) {
			expected /= 2
		}
		if len(records) < expected/2 || len(records) > expected*2 {
			t.Errorf("shard %s has %d records, %d expected", shard.ID, len(records), expected)
		}
	}
	if open != 16 || len(s.Shards) != 30 || len(byKey) != keys {
		t.Errorf("%d shards, %d open, %d keys", len(s.Shards), open, len(byKey))
	}
	for key, shards := range byKey {
		for i, shard := range shards {
			if i == 0 && shard.Parent != "" ||
				i > 0 && (shard.Parent != shards[i-1].ID || shard.First <= shards[i-1].Last) {
				t.Errorf("%v: shard %d is %+v", key, i, shard)
			}
		}
		if len(shards) != rounds {
			t.Errorf("%v: %d records", key, len(shards))
		}
	}
	if s.Shard("") != nil {
		t.Error("there is a shard without a name")
	}
}

func TestTrim(t *testing.T) {
	table := New(orders)
	table.EnableStream("KEYS_ONLY", 1, start)
	minute := func(n int) time.Time { return start.Add(time.Duration(n) * time.Minute) }
	for i := range 10 {
		item := order("ann", i)
		table.Set(Change{At: minute(i), Key: table.KeyOf(item), Item: item})
	}
	s := table.Stream()
	first := s.Shards[0]
	last := first.Read(0, 10)[3].Sequence
	s.Trim(minute(4))
	if got := first.Read(0, 10); len(got) != 6 || !got[0].At.Equal(minute(4)) || first.Trimmed != last {
		t.Errorf("%d records after %d", len(got), first.Trimmed)
	}
	s.Split(minute(10))
	s.Trim(minute(10))
	if got := first.Read(0, 10); len(got) != 0 || len(s.Shards) != 3 {
		t.Errorf("%d records, %d shards: a closed shard stays as long as a record would", len(got), len(s.Shards))
	}
	s.Trim(minute(11))
	if ids := shardIDs(s); len(ids) != 2 || slices.Contains(ids, first.ID) {
		t.Errorf("shards %v", ids)
	}
	s.Trim(minute(100))
	if ids := shardIDs(s); len(ids) != 2 {
		t.Errorf("shards %v: the open ones stay", ids)
	}
}

func shardIDs(s *Stream) (ids []string) {
	for _, shard := range s.Shards {
		ids = append(ids, shard.ID)
	}
	return ids
}

func TestDisable(t *testing.T) {
	table := New(orders)
	if table.Stream() != nil {
		t.Error("a new table has a stream")
	}
	table.EnableStream("NEW_IMAGE", 1, start)
	put(table, order("ann", 1))
	old := table.Stream()
	old.Disable(start)
	put(table, order("ann", 2))
	if table.Stream() != old || old.Enabled || len(old.Shards[0].Read(0, 10)) != 1 || old.Shards[0].Last == 0 {
		t.Errorf("after Disable: %+v", old)
	}
	table.EnableStream("OLD_IMAGE", 1, start.Add(time.Millisecond))
	s := table.Stream()
	if s.Label != "2026-11-21T12:00:00.001" || s.View != "OLD_IMAGE" || !s.Enabled ||
		s.Shards[0].First <= old.Latest {
		t.Errorf("the new one: %+v", s)
	}
}
