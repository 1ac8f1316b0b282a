package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// change is what was done to an item: 0 is that it is not there.
type change struct {
	pk       string
	old, new int
}

func (c change) event() string {
	switch {
	case c.old == 0:
		return "INSERT"
	case c.new == 0:
		return "REMOVE"
	default:
		return "MODIFY"
	}
}

func (c change) image(n int) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(`{"n":{"N":"%d"},"pk":{"S":%q}}`, n, c.pk)
}

// checkFeed errs unless the shards' records are exactly the changes, each once. Those of a key have to be in
// their order from parents to children. Those of a shard have to be in the order of their sequence numbers,
// within the shard's range.
func checkFeed(changes []change, shards []shard, records map[string][]record) error {
	left := map[string][]change{}
	for _, c := range changes {
		left[c.pk] = append(left[c.pk], c)
	}
	lineage := map[string]string{} // of a key: the shard that had it last
	for _, s := range shards {
		last := ""
		for _, r := range records[s.ShardID] {
			pk := parse[struct{ Pk struct{ S string } }](string(r.Dynamodb.Keys)).Pk.S
			if len(left[pk]) == 0 {
				return fmt.Errorf("key %s: a record too many: %v", pk, r)
			}
			c := left[pk][0]
			left[pk] = left[pk][1:]
			if r.EventName != c.event() || string(r.Dynamodb.OldImage) != c.image(c.old) ||
				string(r.Dynamodb.NewImage) != c.image(c.new) {
				return fmt.Errorf("key %s: %s of %s to %s, want %+v", pk, r.EventName, r.Dynamodb.OldImage,
					r.Dynamodb.NewImage, c)
			}
			if of := lineage[pk]; of != "" && of != s.ShardID && !isAncestor(shards, of, s) {
				return fmt.Errorf("key %s: moved from shard %s to %s, which is no descendant", pk, of, s.ShardID)
			}
			lineage[pk] = s.ShardID
			bounds := s.SequenceNumberRange
			if r.sequence() <= last || r.sequence() < bounds.StartingSequenceNumber ||
				bounds.EndingSequenceNumber != "" && r.sequence() > bounds.EndingSequenceNumber ||
				len(r.sequence()) < 21 {
				return fmt.Errorf("shard %v: sequence number %s after %q", s, r.sequence(), last)
			}
			last = r.sequence()
		}
	}
	for pk, changes := range left {
		if len(changes) > 0 {
			return fmt.Errorf("key %s: no record of %+v", pk, changes)
		}
	}
	return nil
}

func isAncestor(shards []shard, ancestor string, of shard) bool {
	for of.ParentShardID != "" {
		if of.ParentShardID == ancestor {
			return true
		}
		i := slices.IndexFunc(shards, func(s shard) bool { return s.ShardID == of.ParentShardID })
		if i < 0 {
			return false
		}
		of = shards[i]
	}
	return false
}

func TestStreamTellsExactlyTheChanges(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r := newFeed(t, "NEW_AND_OLD_IMAGES")
		now := map[string]int{}
		var changes []change
		splits := 0
		for range rapid.IntRange(0, 60).Draw(rt, "steps") {
			r.pass(time.Second)
			pk := fmt.Sprint("k", rapid.IntRange(0, 7).Draw(rt, "key"))
			n := rapid.IntRange(-1, 3).Draw(rt, "value") // 0: delete, -1: split
			switch {
			case n > 0:
				r.set(pk, n)
			case n == 0:
				r.unset(pk)
			case splits < 4:
				splits++
				if err := r.SplitShards("feed"); err != nil {
					rt.Fatal(err)
				}
				continue
			default:
				continue
			}
			if now[pk] != n {
				changes = append(changes, change{pk, now[pk], n})
				now[pk] = n
			}
		}
		shards := r.shards(rapid.IntRange(1, 5).Draw(rt, "shards at once"))
		if want := 1<<(splits+1) - 1; len(shards) != want {
			rt.Fatalf("%d shards after %d splits, want %d", len(shards), splits, want)
		}
		records := map[string][]record{}
		for _, s := range shards {
			all, next := r.records(r.iterator(s.ShardID, "TRIM_HORIZON"), rapid.IntRange(1, 10).Draw(rt, "limit"))
			if closed := s.SequenceNumberRange.EndingSequenceNumber != ""; closed != (next == "") {
				rt.Fatalf("shard %v: next iterator %q", s, next)
			}
			records[s.ShardID] = all
			if len(all) > 0 { // the other iterators give a part of it
				i := rapid.IntRange(0, len(all)-1).Draw(rt, "at")
				at, _ := r.records(r.iterator(s.ShardID, "AT_SEQUENCE_NUMBER", all[i].sequence()), 3)
				after, _ := r.records(r.iterator(s.ShardID, "AFTER_SEQUENCE_NUMBER", all[i].sequence()), 3)
				same := func(a, b record) bool { return a.sequence() == b.sequence() }
				if !slices.EqualFunc(at, all[i:], same) || !slices.EqualFunc(after, all[i+1:], same) {
					rt.Fatalf("at and after %s: %v, %v; want of %v", all[i].sequence(), at, after, all)
				}
			}
			if latest, _ := r.records(r.iterator(s.ShardID, "LATEST"), 3); len(latest) > 0 {
				rt.Fatalf("records after the latest: %v", latest)
			}
		}
		if err := checkFeed(changes, shards, records); err != nil {
			rt.Fatal(err)
		}
	})
}

// A feed that lost, repeated, swapped or changed a record, or moved a key to a foreign shard, is found out.
func TestFeedControl(t *testing.T) {
	t.Parallel()
	r := newFeed(t, "NEW_AND_OLD_IMAGES")
	r.set("a", 1)
	r.set("a", 2)
	r.unset("a")
	r.set("b", 1)
	changes := []change{{"a", 0, 1}, {"a", 1, 2}, {"a", 2, 0}, {"b", 0, 1}}
	shards := r.shards(10)
	all, _ := r.records(r.iterator(shards[0].ShardID, "TRIM_HORIZON"), 10)
	check := func(records ...record) error {
		return checkFeed(changes, shards, map[string][]record{shards[0].ShardID: records})
	}
	if err := check(all...); err != nil {
		t.Fatal(err)
	}
	changed := all[1]
	changed.Dynamodb.OldImage = all[0].Dynamodb.OldImage
	for name, records := range map[string][]record{
		"lost":     {all[0], all[1], all[3]},
		"repeated": {all[0], all[0], all[1], all[2], all[3]},
		"swapped":  {all[1], all[0], all[2], all[3]},
		"order":    {all[0], all[3], all[1], all[2]},
		"changed":  {all[0], changed, all[2], all[3]},
	} {
		if err := check(records...); err == nil {
			t.Errorf("%s: not found out", name)
		}
	}
	foreign := append(slices.Clone(shards), shard{ShardID: "foreign"})
	if err := checkFeed(changes, foreign, map[string][]record{shards[0].ShardID: all[:1],
		"foreign": all[1:]}); err == nil {
		t.Error("a key that moved to a foreign shard was not found out")
	}
}
