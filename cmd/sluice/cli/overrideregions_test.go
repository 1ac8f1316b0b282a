package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/store"
)

// worldwide is a schema with a resource that two regions putQuota.
const worldwide = `version: 1
owner: acme
revision: 1
go: {package: worldwide, out: ./out}
stores: [dynamodb]
regions:
  names: [eu-west-1, us-east-1]
entities:
  user: {}
resources:
  api:
    limits:
      rpm: {capacity: 1_000, every: 1m}
      tpm: {capacity: 1, every: 1m}
    entities: {user: {}}
    global: true
`

// TestOverrideManaged is the life of an entry that is regional sync's, an operator's, and sync's again.
func TestOverrideManaged(t *testing.T) {
	sequential(t)
	schema := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(schema, []byte(worldwide), 0o600); err != nil {
		t.Fatal(err)
	}
	s, table := newSession(t, schema)
	spec := &store.Spec{
		Resource: "api", Limits: []string{"rpm",
			"tpm"}, Regions: &store.Regions{Names: []string{"eu-west-1",
			"us-east-1"}, Floor: 5, Window: 10 * time.Second},
	}
	sync := operator.NewRegional(s.client, table, func() time.Time { return start })
	putQuota := func() {
		t.Helper()
		rpm, tpm := bucket.Per(1000, time.Minute).Quota(300), bucket.Per(1, time.Minute).Quota(0)
		if _, err := sync.PutQuota(t.Context(), spec,
			store.Stored{At: "user-1", Epoch: 4, Limits: []*bucket.Limit{&rpm, &tpm}}); err != nil {
			t.Fatal(err)
		}
	}
	// begins holds how the answer of a command begins.
	begins := func(command, want string) {
		t.Helper()
		if code, out, errs := sluice(t, start, append(strings.Fields(command), s.flags...)...); code != 0 ||
			errs != "" || !strings.HasPrefix(out, want) {
			t.Errorf("%s: exit code %d\n%s%s", command, code, out, errs)
		}
	}
	putQuota()
	s.run(
		"override explain user-1 api",
		0,
		`user-1 on api: its quota is managed by regional sync, but is not in force, since the heartbeat is not alive
  LIMIT  LEVEL   CAPACITY  BURST  REFILL
  rpm    user-1       300    300  300 every 1m
         floor         50     50  50 every 1m     in force
         user           -      -  -
         schema     1,000  1,000  1,000 every 1m
  tpm    user-1         0      1  1 every 1m
         floor          0      1  1 every 1m      in force
         user           -      -  -
         schema         1      1  1 every 1m
no bucket is stored: the next acquire makes a full one with the limits in force
`,
		"",
	)
	if err := sync.PutHeartbeat(t.Context(), store.Heartbeat{Region: "eu-west-1", Epoch: 4,
		Expires: start.UnixMilli() + 30_000}); err != nil {
		t.Fatal(err)
	}
	s.run(
		"override explain user-1 api",
		0,
		`user-1 on api: its quota is managed by regional sync for eu-west-1, in epoch 4
  LIMIT  LEVEL   CAPACITY  BURST  REFILL
  rpm    user-1       300    300  300 every 1m    in force
         floor         50     50  50 every 1m
         user           -      -  -
         schema     1,000  1,000  1,000 every 1m
  tpm    user-1         0      1  1 every 1m      in force
         floor          0      1  1 every 1m
         user           -      -  -
         schema         1      1  1 every 1m
no bucket is stored: the next acquire makes a full one with the limits in force
`,
		"",
	)
	s.run(
		"override get user-1 api",
		0,
		"user-1 on api: revision 1772366400000, a quota that regional sync manages, of epoch 4: "+
			"set replaces it, delete changes nothing"+`
  LIMIT  CAPACITY  BURST  REFILL
  rpm         300    300  300 every 1m
  tpm           0      1  1 every 1m
`,
		"",
	)
	s.run("override delete user-1 api", 0, "user-1 on api: nothing to change, revision 1772366400000, a "+
		"quota that regional sync manages, of epoch 4: set replaces it, delete changes nothing\n", "")
	// The limit that is not named does not stay as it was: no operator had set it.
	s.run("override set user-1 api rpm=7", 0, `user-1 on api: revision 1772366400002, was 1772366400000
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was       300    300  300 every 1m  user-1
         now         7      7  7 every 1m    user-1
  tpm    was         0      1  1 every 1m    user-1
         now         0      1  1 every 1m    floor
running processes use it within a window of regional sync, 10s
`+"it replaces the quota that regional sync managed, for this region only, and comes on top of what "+
		"regions divide: `sluice override delete user-1 api` returns it to sync\n", "")
	s.run("override set user-1 api rpm=8", 0, `user-1 on api: revision 1772366400003, was 1772366400002
  LIMIT       CAPACITY  BURST  REFILL      FROM
  rpm    was         7      7  7 every 1m  user-1
         now         8      8  8 every 1m  user-1
running processes use it within a window of regional sync, 10s
`+"it is for this region only, on top of what regions divide; regional sync does not change it: `sluice "+
		"override delete user-1 api` returns it to sync\n", "")
	begins("override explain user-1 api", "user-1 on api: an operator's override is for this region only, "+
		"and regional sync for eu-west-1 does not change it; `sluice override delete user-1 api` returns it to "+
		"sync\n")
	s.run("override set user api rpm=2_000", 0, `user on api: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL          FROM
  rpm    was     1,000  1,000  1,000 every 1m  schema
         now     2,000  2,000  2,000 every 1m  user
running processes use it within a window of regional sync, 10s
an override of a kind is for all regions together: set it in the table of each, eu-west-1, us-east-1
`, "")
	s.run("override list api", 0, `AT      LIMIT  CAPACITY  BURST  REFILL          REVISION       BY
user    rpm       2,000  2,000  2,000 every 1m  1772366400000  operator
user-1  rpm           8      8  8 every 1m      1772366400003  operator
`, "")
	s.run("override delete user-1 api", 0, `user-1 on api: revision 1772366400004, was 1772366400003
  LIMIT       CAPACITY  BURST  REFILL        FROM
  rpm    was         8      8  8 every 1m    user-1
         now       100    100  100 every 1m  floor
running processes use it within a window of regional sync, 10s
`+"regional sync manages its quota again from one of its next cycles; until then the region has what "+
		"every region keeps\n", "")
	begins("override explain user-1 api",
		"user-1 on api: regional sync for eu-west-1, in epoch 4, has stored no quota\n")
	s.run("entity put user-1", 0, `stored user-1
  ENTITY  PARENT  CASCADE
  user-1  -       yes
running processes use it once their caches expire, after 1m by default
`, "")
	s.run("entity delete user-1", 0, `deleted user-1
running processes use it once their caches expire, after 1m by default
its quotas of api stay: regional sync manages them and reclaims unused ones
`, "")
	putQuota()
	s.run("override list api", 0, `AT      LIMIT  CAPACITY  BURST  REFILL          REVISION       BY
user    rpm       2,000  2,000  2,000 every 1m  1772366400000  operator
user-1  rpm         300    300  300 every 1m    1772366400005  sync, epoch 4
user-1  tpm           0      1  1 every 1m      1772366400005  sync, epoch 4
`, "")
}
