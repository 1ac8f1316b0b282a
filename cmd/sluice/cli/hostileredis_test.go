package cli_test

import (
	"strconv"
	"strings"
	"testing"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/redisstore"
	"github.com/sluice-go/sluice/runtime/store"
)

// TestHostileIDsOnRedis is TestHostileIDs for ids, and for names of limits, in keys of a Redis.
func TestHostileIDsOnRedis(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	r.acquire(limits.User{ID: "123", Project: limits.Project{ID: "7"}}, limits.GPT4Cost{TPM: 1_000})
	for _, key := range r.server.Keys() {
		for _, name := range []string{
			strings.ReplaceAll(key, "user-123", hostile), strings.ReplaceAll(key, ":tpm:", ":t\x1b[2J\npm:"),
		} {
			if err := r.client.Copy(t.Context(), key, name, 0, true).Err(); err != nil && name != key {
				t.Fatal(err)
			}
		}
	}
	member := store.Member{Entity: hostile, Parent: "project-7", Cascade: true}
	if err := redisstore.New(r.client).Members().Put(t.Context(), member); err != nil {
		t.Fatal(err)
	}
	literal := strconv.Quote(hostile)
	for _, test := range []struct {
		line  string // ID stands for the literal
		code  int
		shown string
	}{
		{"peek ID gpt-4", 0, literal},
		{"top gpt-4", 0, literal},
		{"top gpt-4", 0, `limit "t\x1b[2J\npm"`},
		{"entity children project-7", 0, literal},
		{"entity show ID", 0, literal},
		{"override get ID gpt-4", 0, literal},
		{"reset ID gpt-4", 0, literal},
		{"entity delete ID", 0, literal},
		{"entity erase ID", 0, literal},
	} {
		args := strings.Fields(test.line)
		for i, arg := range args {
			args[i] = strings.ReplaceAll(arg, "ID", literal)
		}
		code, out, errs := command(t.Context(), append(args, r.flags...)...)
		for line := range strings.Lines(out + errs) {
			if !store.IsPlain(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s: printed %q", test.line, line)
			}
		}
		if code != test.code || !strings.Contains(out+errs, test.shown) {
			t.Errorf("%s: exit code %d, stdout\n%sstderr\n%s", test.line, code, out, errs)
		}
	}
}
