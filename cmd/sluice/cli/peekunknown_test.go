package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// TestPeekUnknownResource: a resource that is neither stored nor in the schema is no full bucket.
func TestPeekUnknownResource(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	for _, flag := range []string{"", "--json"} {
		args := []string{"peek", "user-123", "gpt4", "--table", table, "--file", demo}
		if flag != "" {
			args = append(args, flag)
		}
		code, out, errs := sluice(t, start, args...)
		expect(t, code, out, errs, 1, "", "sluice: user-123 on gpt4: no bucket is stored, and "+demo+
			` has no resource "gpt4": did you mean "gpt-4"?`+"\n")
	}
	for _, test := range []struct{ entity, why string }{
		{"usr-1", `entity "usr-1" is of kind usr, which limits.yaml does not have: it has `},
		{"org-1", "gpt-4 has no bucket for kind org: pass an entity or a kind of "},
	} {
		code, out, errs := sluice(t, start, "peek", test.entity, "gpt-4", "--table", table, "--file", demo)
		if want := "sluice: " + test.entity + " on gpt-4: no bucket is stored, and " + test.why; code != 1 ||
			out != "" || !strings.HasPrefix(errs, want) {
			t.Errorf("exit code %d\n%s%s\nwant %s", code, out, errs, want)
		}
	}
	// without a schema, nothing is known about it
	code, out, errs := sluice(t, start, "peek", "user-123", "gpt4", "--table", table)
	expect(t, code, out, errs, 0, notStored("user-123", "gpt4"), "")
	// a schema that is named is not left out
	const cure = "; pass --file, or run the command in the schema's folder\n"
	for file, why := range map[string]string{
		"none.yaml": "read schema: open none.yaml: no such file or directory (sluice init writes one)",
		".":         "read schema: . is a folder: name the file in it, such as limits.yaml",
	} {
		for _, line := range []string{"peek user-123 gpt-4", "top gpt-4", "audit user-123"} {
			code, out, errs := sluice(t, start, append(strings.Fields(line), "--table", table, "--file", file)...)
			expect(t, code, out, errs, 1, "", "sluice: "+why+cure)
		}
	}
}

// TestPeekRemoved: a stored bucket that the schema no longer has is shown, with a note.
func TestPeekRemoved(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{RPM: 35})
	schema, err := os.ReadFile(demo)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	text := strings.ReplaceAll(string(schema), "gpt-4", "gpt-5")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, flags := range [][]string{nil, {"--json"}} {
		code, out, errs := sluice(t, start, append([]string{"peek", "user-123", "gpt-4", "--table", table, "--file",
			file}, flags...)...)
		if code != 0 || !strings.Contains(out, "rpm") ||
			!strings.HasPrefix(errs, "note: no call has this bucket: "+file+` has no resource "gpt-4": `) {
			t.Errorf("%v: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
}

// TestPeekUnknownOnRedis: a kind or a resource that is not in the schema is no full bucket.
func TestPeekUnknownOnRedis(t *testing.T) {
	r := newRedis(t, demo)
	for _, args := range [][]string{{"usr-1", "gpt-4"}, {"user-1", "gpt4"}} {
		code, out, errs := command(t.Context(), append(append([]string{"peek"}, args...), r.flags...)...)
		if code != 2 || out != "" || !strings.Contains(errs, args[0]) && !strings.Contains(errs, `"gpt4"`) {
			t.Errorf("%v: exit code %d\n%s%s", args, code, out, errs)
		}
	}
}

// TestExplainJSON: the levels of each limit, and whether the bucket has those in force.
func TestExplainJSON(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{RPM: 35})
	if code, _, errs := sluice(t, start, append(strings.Fields("override set user-123 gpt-4 rpm=200"),
		s.flags...)...); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs := sluice(t, start, append(strings.Fields("override explain user-123 gpt-4 --json"),
		s.flags...)...)
	type level struct {
		At       string
		Capacity *int64 `json:"capacity_milli"`
		InForce  bool   `json:"in_force"`
	}
	var got struct {
		Entity, Resource string
		Limits           []struct {
			Limit   string
			Origins []level `json:"levels"`
		}
		Buckets []struct {
			Entity  string
			InForce bool `json:"in_force"`
			Limits  []struct {
				Available int64 `json:"available_milli"`
			}
		}
	}
	if err := json.Unmarshal([]byte(out), &got); code != 0 || err != nil || errs != "" ||
		strings.Count(out, "\n") != 1 {
		t.Fatalf("exit code %d, %v\n%s%s", code, err, out, errs)
	}
	if got.Entity != "user-123" || got.Resource != "gpt-4" || len(got.Limits) != 2 || len(got.Buckets) != 1 ||
		got.Buckets[0].Entity != "user-123" || got.Buckets[0].InForce ||
		got.Buckets[0].Limits[0].Available != 65_000 {
		t.Fatalf("%+v", got)
	}
	milli := func(n int64) *int64 { return &n }
	want := [][]level{
		{{"user-123", milli(200_000), true}, {"user", nil, false}, {"schema", milli(100_000), false}},
		{{"user-123", nil, false}, {"user", nil, false}, {"schema", got.Limits[1].Origins[2].Capacity, true}},
	}
	for i, l := range got.Limits {
		if diff := cmp.Diff(want[i], l.Origins); diff != "" {
			t.Errorf("%s (-want +got)\n%s", l.Limit, diff)
		}
	}
}

// TestResetJSON: the balances before and after, of the filled limits.
func TestResetJSON(t *testing.T) {
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{RPM: 35})
	code, out, errs := sluice(t, start, append(strings.Fields("reset user-123 gpt-4 --limit rpm --json"),
		s.flags[:2]...)...)
	expect(t, code, out, errs, 0, `{"entity":"user-123","resource":"gpt-4","limits":[{"limit":"rpm",`+
		`"before_milli":65000,"after_milli":100000,"burst_milli":100000}]}`+"\n", "")
}
