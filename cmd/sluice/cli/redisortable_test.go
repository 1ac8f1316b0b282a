package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/dynamotest"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// listing returns the name of a file that is the demo's schema but for its stores.
func listing(t *testing.T, stores string) string {
	t.Helper()
	text, err := os.ReadFile(demo)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "limits.yaml")
	listed := strings.Replace(string(text), "stores: [dynamodb, redis]", stores, 1)
	if listed == string(text) {
		t.Fatal("the demo has other stores")
	}
	if err := os.WriteFile(file, []byte(listed), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestStoreNotListed: nothing is read or written where no limiter of the schema looks.
func TestStoreNotListed(t *testing.T) {
	sequential(t)
	r := newRedis(t, demo)
	s, table := newSession(t, demo)
	refused := func(file, store, instead string, flags []string) {
		t.Helper()
		for _, line := range onRedis {
			words := strings.Fields(line)
			name := words[0]
			if name == "override" || name == "entity" {
				name += " " + words[1]
			}
			code, out, errs := command(t.Context(), append(append(words, "--file", file), flags...)...)
			expect(t, code, out, errs, 2, "", "sluice: "+file+" does not list "+store+
				" in its stores, so that no limiter generated from it "+
				"looks there: add "+store+" to stores and run `sluice generate`, or "+instead+
				", or --file for another schema; run `sluice "+name+" --help`\n")
		}
	}
	onTable := []string{"--table", table, "--endpoint", dynamotest.Endpoint(t)}
	const aTable, aRedis = "pass --table for a table of DynamoDB", "pass --redis for a Redis"
	refused(listing(t, "stores: [dynamodb]"), "redis", aTable, r.flags[:2])
	refused(listing(t, ""), "redis", aTable, r.flags[:2])
	only := listing(t, "stores: [redis]")
	refused(only, "dynamodb", aRedis, onTable)
	t.Setenv("SLUICE_REDIS_URL", r.flags[1])
	refused(listing(t, "stores: [dynamodb]"), "redis", aTable, nil)
	if keys, items := r.server.Keys(), s.items(); len(keys) != 0 || items != 0 {
		t.Errorf("keys %q and %d items were written", keys, items)
	}

	// A table needs no schema where there is none to go by, and the other store is what it was.
	for _, flags := range [][]string{
		onTable, {"--file", only}, append([]string{"--file", listing(t, "")}, onTable...),
	} {
		code, out, errs := command(t.Context(), append([]string{"peek", "project-1", "gpt-4"}, flags...)...)
		if code != 0 || out != notStored("project-1", "gpt-4") || errs != "" {
			t.Errorf("%q: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
}

// bare takes away all that says where DynamoDB is.
func bare(t *testing.T) {
	t.Helper()
	for _, name := range []string{"AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE", "AWS_ENDPOINT_URL_DYNAMODB",
		"AWS_ENDPOINT_URL"} {
		t.Setenv(name, "")
	}
	t.Setenv("AWS_CONFIG_FILE", "none")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "none")
}

// TestNowhereOrRedis: an error about a missing region or table says how to name a Redis, if the schema may be
// served by one. Other errors do not.
func TestNowhereOrRedis(t *testing.T) {
	sequential(t)
	bare(t)
	const noRegion = "sluice: no AWS region: pass --region, set AWS_REGION, or choose a profile that has " +
		"one; without AWS, run `sluice dev` and set what it prints"
	const hint = "; for buckets in a Redis, pass --redis\n"
	missing := []string{"--table", "cli-test-missing", "--endpoint", dynamotest.Endpoint(t)}
	check := func(file string, want string) {
		t.Helper()
		for _, line := range onRedis {
			args := append(strings.Fields(line), "--file", file)
			code, out, errs := command(t.Context(), append(args, "--table", "rate_limits")...)
			expect(t, code, out, errs, 1, "", noRegion+want)
			code, out, errs = command(t.Context(), append(args, missing...)...)
			if code != 1 || out != "" || !hasFacts(errs, "sluice: table cli-test-missing does not exist: ") ||
				strings.Contains(errs, hint[:len(hint)-1]) != (want == hint) {
				t.Errorf("%s: exit code %d\n%s%s\nwant %s", line, code, out, errs, want)
			}
		}
	}
	check(demo, hint)
	check(listing(t, "stores: [dynamodb]"), "\n")
	t.Setenv("SLUICE_REDIS_URL", "redis://localhost")
	check(listing(t, "stores: [dynamodb]"), hint)

	// The control: a failure of another kind.
	code, out, errs := command(t.Context(), "peek", "user-1", "gpt-4", "--file", demo, "--endpoint", "nowhere")
	expect(t, code, out, errs, 2, "",
		"sluice: endpoint \"nowhere\" is not a URL: pass one such as http://localhost:8000; run `sluice peek "+
			"--help`\n")
}

// TestUsageBesideRedis: where the environment has a Redis, usage says that it is not about that, unless a
// table is named.
func TestUsageBesideRedis(t *testing.T) {
	sequential(t)
	client := dynamotest.Client(t)
	table := dynamotest.Table(t, client, operator.Table)
	bare(t)
	t.Setenv("SLUICE_REDIS_URL", "redis://:sesame@localhost")
	code, out, errs := command(t.Context(), "usage", "user-1")
	expect(t, code, out, errs, 2, "", "sluice: SLUICE_REDIS_URL is set, and usage is about DynamoDB alone: "+
		"Redis has no stream of what was consumed; for a table pass --table; run `sluice usage --help`\n")

	t.Setenv("AWS_ENDPOINT_URL_DYNAMODB", dynamotest.Endpoint(t))
	for _, name := range []string{"AWS_REGION", "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"} {
		t.Setenv(name, "local")
	}
	named := func(flags ...string) {
		t.Helper()
		code, out, errs := command(t.Context(), append([]string{"usage", "user-1"}, flags...)...)
		if code != 0 || out != "" || !hasFacts(errs, "user-1: no usage by day is stored") {
			t.Errorf("%q: exit code %d\n%s%s", flags, code, out, errs)
		}
	}
	named("--table", table)
	t.Setenv("SLUICE_TABLE", table)
	named()
}
