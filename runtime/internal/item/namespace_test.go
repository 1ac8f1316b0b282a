package item_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/runtime/internal/item"
)

// texts returns the strings of an item.
func texts(stored item.Item) map[string]string {
	all := map[string]string{}
	for name, value := range stored {
		if s, ok := value.(*types.AttributeValueMemberS); ok {
			all[name] = s.Value
		}
	}
	return all
}

// TestIn: hash keys move, of which there may be several. Other values and the original stay. Keys that have
// moved stay too, and are read back.
func TestIn(t *testing.T) {
	original := item.BucketIdentity("user-1", "gpt-4")
	before := texts(original)
	moved := item.Namespace("team-a").In(original)
	want := texts(original)
	want["PK"], want["GSI2PK"] = "team-a#ENTITY#user-1", "team-a#RESOURCE#gpt-4"
	for range 2 {
		if diff := cmp.Diff(want, texts(moved)); diff != "" {
			t.Errorf("moved (-want +got):\n%s", diff)
		}
		moved = item.Namespace("team-b").In(moved)
	}
	if diff := cmp.Diff(before, texts(original)); diff != "" {
		t.Errorf("the original has changed:\n%s", diff)
	}
	if got := item.KeyOf(moved); got != item.KeyOf(original) {
		t.Errorf("read back as %v", got)
	}
	if n, name := item.NamespaceOf(moved), item.NameOf(moved); n != "team-a" ||
		name != "team-a#ENTITY#user-1 / #BUCKET#gpt-4" {
		t.Errorf("namespace %q, name %s", n, name)
	}
	if n, name := item.NamespaceOf(original), item.NameOf(original); n != "" ||
		name != "ENTITY#user-1 / #BUCKET#gpt-4" {
		t.Errorf("namespace %q, name %s", n, name)
	}
	for _, key := range []item.Item{
		item.VersionKey(), item.HeartbeatKey(), item.CheckpointKey("shard"), item.EntityKey("user-1"),
		item.OverrideKey("gpt-4", "user"), item.OverrideKey("gpt-4", "user-1"),
		item.OverrideKey("gpt-4", "pro.user"),
	} {
		if n := item.NamespaceOf(item.Namespace("team-a").In(key)); n != "team-a" {
			t.Errorf("%v is in namespace %q", texts(key), n)
		}
	}
}
