package cli_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/store"
)

// hostile is an id that an earlier version stored for a client: it clears the screen, forges a line and turns
// the text around it.
const hostile = "user-\x1b[2J\nuser-2 stored\u202e"

// withHostile returns a session on a table that has a bucket, an override and a parent of hostile, of which
// user-3 is the child.
func withHostile(t *testing.T) session {
	t.Helper()
	s, table := newSession(t, demo)
	acquire(s, table, limits.GPT4Cost{TPM: 1_000})
	found, err := s.client.Scan(t.Context(), &dynamodb.ScanInput{TableName: &table})
	if err != nil {
		t.Fatal(err)
	}
	for _, item := range found.Items {
		for name, value := range item { // the same bucket under another id
			if text, ok := value.(*types.AttributeValueMemberS); ok && strings.Contains(text.Value, "user-123") {
				item[name] = &types.AttributeValueMemberS{Value: strings.ReplaceAll(text.Value, "user-123", hostile)}
			}
		}
		put := &dynamodb.PutItemInput{TableName: &table, Item: item}
		if _, err := s.client.PutItem(t.Context(), put); err != nil {
			t.Fatal(err)
		}
	}
	members := operator.NewMembers(s.client, table, fixed{start}.Now)
	for entity, parent := range map[string]string{hostile: "project-7", "user-3": hostile} {
		err := members.Put(t.Context(), store.Member{Entity: entity, Parent: parent, Cascade: true})
		if err != nil {
			t.Fatal(err)
		}
	}
	limit := bucket.Limit{Capacity: 1_000, Burst: 1_000, Refill: 1_000, Period: 60_000}
	if _, err := operator.NewOverrides(s.client, table, fixed{start}.Now).Set(t.Context(),
		&store.Spec{Resource: "gpt-4", Limits: []string{"rpm", "tpm"}},
		store.Stored{At: hostile, Limits: []*bucket.Limit{&limit, nil}}); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestHostileIDs: commands print an id with control characters as a Go string, and reach it by that string.
// Each line that they print is their own.
func TestHostileIDs(t *testing.T) {
	sequential(t)
	s := withHostile(t)
	literal := strconv.Quote(hostile)
	id := strings.Trim(strings.TrimPrefix(literal, `"user-`), `"`)
	for _, test := range []struct {
		line  string // ID stands for the literal
		code  int
		shown bool // it prints the literal
	}{
		{"peek ID gpt-4", 0, true},
		{"peek ID nothing", 1, true},
		{"top gpt-4", 0, true},
		{"entity show ID", 0, true},
		{"entity show user-3", 0, true},
		{"entity children project-7", 0, true},
		{"entity children ID", 0, false},
		{"entity put ID --parent project-7", 2, true},
		{"entity put user-3 --parent ID", 2, true},
		{"entity delete ID", 1, true}, // it has a child
		{"override list gpt-4", 0, true},
		{"override export --format csv", 0, true},
		{"override get ID gpt-4", 0, true},
		{"override explain ID gpt-4", 0, true},
		{"override set ID gpt-4 rpm=7", 2, true},
		{"override delete ID gpt-4", 0, true},
		{"override get ID gpt-4", 0, true},
		{"reset ID gpt-4", 0, true},
		{"reset ID nothing", 1, true},
		{"usage ID", 0, true},
		{"region status --entity ID --snapshots file:///nowhere", 2, false}, // nothing is global
		{"entity delete ID --force", 0, true},
		{"entity show ID", 1, true},
		{"entity erase ID", 1, true}, // it has a child
		{"entity erase ID --leave-children", 0, true},
		{"peek ID#1 gpt-4", 2, false},
	} {
		args := strings.Fields(test.line)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "ID", literal)
		}
		flags := s.flags
		switch args[0] {
		case "usage":
			flags = s.flags[:2] // --table
		case "region":
			flags = s.flags[2:] // --file
		}
		code, out, errs := sluice(t, start, append(args, flags...)...)
		for line := range strings.Lines(out + errs) {
			if !store.IsPlain(strings.TrimSuffix(line, "\n")) || strings.HasPrefix(line, "user-2") {
				t.Errorf("%s: printed %q", test.line, line)
			}
		}
		if code != test.code || test.shown && !strings.Contains(out+errs, id) {
			t.Errorf("%s: exit code %d, stdout\n%sstderr\n%s", test.line, code, out, errs)
		}
	}
}

// TestJSONOfHostileIDs: each command that lists has a form for programs, with one object on a line, in which
// an id is as it is stored.
func TestJSONOfHostileIDs(t *testing.T) {
	sequential(t)
	s := withHostile(t)
	literal := strconv.Quote(hostile)
	for _, test := range []struct {
		args []string
		key  string // of the id
	}{
		{[]string{"peek", literal, "gpt-4"}, "entity"},
		{[]string{"entity", "children", "project-7"}, "entity"},
		{[]string{"entity", "show", literal}, "entity"},
		{[]string{"override", "list", "gpt-4"}, "at"},
		{[]string{"override", "get", literal, "gpt-4"}, "at"},
		{[]string{"override", "explain", literal, "gpt-4"}, "entity"},
		{[]string{"reset", literal, "gpt-4"}, "entity"},
	} {
		code, out, errs := sluice(t, start, append(append(test.args, "--json"), s.flags...)...)
		found := false
		for line := range strings.Lines(out) {
			var object map[string]any
			err := json.Unmarshal([]byte(line), &object)
			if err != nil || !store.IsPlain(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%v: %v of %q", test.args, err, line)
			}
			found = found || object[test.key] == hostile
		}
		if code != 0 || !found || !store.IsPlain(strings.TrimSuffix(errs, "\n")) {
			t.Errorf("%v: exit code %d\n%s%s", test.args, code, out, errs)
		}
	}
	code, out, errs := sluice(t, start, append([]string{"top", "gpt-4", "--json"}, s.flags...)...)
	var top struct{ Rows []struct{ Entity string } }
	if err := json.Unmarshal([]byte(out), &top); code != 0 || err != nil || len(top.Rows) == 0 ||
		!store.IsPlain(strings.ReplaceAll(out, "\n", "")) {
		t.Errorf("top: exit code %d, %v\n%s%s", code, err, out, errs)
	}
	// last, since it switches on TTL, and the buckets are of an earlier year
	if code, _, errs := sluice(t, start, "table", "create", s.flags[0], s.flags[1]); code != 0 {
		t.Fatal(errs)
	}
	code, out, errs = sluice(t, start, "table", "check", "--json", s.flags[0], s.flags[1])
	var checked struct{ Notes []struct{ What string } }
	if err := json.Unmarshal([]byte(out), &checked); code != 0 || err != nil || len(checked.Notes) == 0 {
		t.Errorf("table check: exit code %d, %v\n%s%s", code, err, out, errs)
	}
}

// TestHostileArguments: an argument that a script took from a client does not reach the terminal as it is.
func TestHostileArguments(t *testing.T) {
	sequential(t)
	const evil = "a\x1b[2J\nsluice: all is well\u202e"
	for _, args := range [][]string{
		{evil}, {"--" + evil}, {"peek", "user-1", "gpt-4", evil}, {"peek", "user-" + evil, "gpt-4"},
		{"peek", `"user-\q"`, "gpt-4"}, {"generate", "--file", evil}, {"breaking", "--against", evil},
		{"breaking", "--against", "git:" + evil}, {"dev", "--host", evil}, {"init", evil}, {"init", "\xff"},
		{"peek", `"a\nsluice: ok-1"`, "gpt-4"},
		{"override", "set", `"a\nsluice: ok-1"`, "gpt-4", "rpm=1", "--file", demo},
		{"entity", "put", `"a\nsluice: ok-1"`, "--file", demo},
		{"peek", "user-1", "gpt-4", "--redis", "redis://:pw" + evil + "@localhost"},
	} {
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs}.Run(t.Context(), args)
		line := strings.TrimSuffix(errs.String(), "\n")
		if code != 2 || out.String() != "" || !store.IsPlain(line) || !strings.HasPrefix(line, "sluice: ") ||
			strings.Contains(line, "pw") {
			t.Errorf("%q: exit code %d\n%q%q", args, code, out.String(), line)
		}
	}
}
