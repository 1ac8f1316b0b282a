package s3test

import (
	"context"
	"io"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluice-go/sluice/cmd/sluice/cli"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestCommands: two regions publish in one bucket, by the command, and each sees the other. That there is no
// bucket is said.
func TestCommands(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL_S3", serve(t))
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	sluice := func(line string) (int, string) {
		t.Helper()
		var out strings.Builder
		args := append(strings.Fields(line), "--file", "../../../examples/regionsync/limits.yaml")
		return cli.Program{Stdout: &out, Stderr: &out, Now: func() time.Time {
			return now
		}}.Run(t.Context(), args), out.String()
	}
	names := []string{"eu-central-1", "us-east-1"}
	endpoints := map[string]string{}
	for _, name := range names {
		endpoints[name] = serveTable(t)
	}
	for range 4 {
		now = now.Add(time.Minute)
		for _, name := range names {
			if code, out := sluice("region sync --once --snapshots s3://quotas/limits --region " + name +
				" --endpoint " + endpoints[name]); code != 0 {
				t.Fatalf("%s: exit code %d\n%s", name, code, out)
			}
		}
	}
	code, out := sluice("region status --region eu-central-1 --snapshots s3://quotas/limits/")
	if want := `REGION        STATE  AGE  EPOCH  SEQUENCE  ENTITIES
eu-central-1  live    0s      1         2         0
us-east-1     live    0s      1         2         0
no region has a quota yet
`; code != 0 || out != want {
		t.Errorf("exit code %d\n%s\nwant\n%s", code, out, want)
	}
	code, out = sluice("region sync --once --snapshots s3://quota --region eu-central-1 --endpoint " +
		endpoints[names[0]])
	if code != 1 || !strings.HasPrefix(out, "sluice: "+noBucket) || !strings.HasSuffix(out, noBucketCure) {
		t.Errorf("without the bucket: exit code %d\n%s", code, out)
	}
}

// How the error without a bucket begins, and ends.
const (
	noBucket     = "this region's own snapshot: s3://quota/eu-central-1/snapshot.json: GetObject: "
	noBucketCure = "; create the bucket, in one of the regions, or name the one that all of them share\n"
)

// on calls do at each write once all that was written has text.
type on struct {
	all  strings.Builder
	text string
	do   func()
}

// Write implements io.Writer.
func (o *on) Write(p []byte) (int, error) {
	o.all.Write(p)
	if strings.Contains(o.all.String(), o.text) {
		o.do()
	}
	return len(p), nil
}

// TestWaitsForBucket: a sync that is started before its bucket is there says so once, waits, and goes on when
// the bucket is there.
func TestWaitsForBucket(t *testing.T) {
	address, backend := serveEmpty(t)
	t.Setenv("AWS_ENDPOINT_URL_S3", address)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := &on{text: "epoch 1 begins", do: cancel}
	waits := &on{text: "waiting: ", do: sync.OnceFunc(func() {
		if err := backend.CreateBucket("quota"); err != nil {
			t.Error(err)
		}
	})}
	var out strings.Builder
	program := cli.Program{Stdout: &out, Stderr: io.MultiWriter(waits, begun), Now: time.Now}
	code := program.Run(ctx, strings.Fields("region sync --region eu-central-1 --snapshots s3://quota "+
		"--file ../../../examples/regionsync/limits.yaml --endpoint "+serveTable(t)))
	said := waits.all.String()
	first, rest, _ := strings.Cut(said, "\n")
	if code != 0 || !strings.HasPrefix(first, "waiting: "+noBucket) ||
		!strings.HasSuffix(first+"\n", noBucketCure) || strings.Contains(said, "DynamoDB") {
		t.Errorf("before the bucket was there: exit code %d\n%s", code, said)
	}
	if !strings.Contains(rest, begun.text) || strings.Contains(rest, waits.text) {
		t.Errorf("once the bucket was there:\n%s", rest)
	}
}

// serveTable starts a DynamoDB that has the table, and returns its address.
func serveTable(t *testing.T) string {
	t.Helper()
	engine := memdynamo.New()
	if _, err := operator.CreateTable(t.Context(), engine.Client(), "rate_limits"); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(engine)
	t.Cleanup(server.Close)
	return server.URL
}

// TestS3Down: where S3 does not answer, the error is S3's, not DynamoDB's.
func TestS3Down(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	t.Setenv("AWS_ENDPOINT_URL_S3", closed.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	table := serveTable(t)
	for _, line := range []string{
		"region status", "region sync --endpoint " + table, "region sync --once --endpoint " + table,
	} {
		var out, errs strings.Builder
		code := cli.Program{Stdout: &out, Stderr: &errs, Now: time.Now}.Run(t.Context(),
			strings.Fields(line+" --region eu-central-1 --snapshots s3://quotas --file "+
				"../../../examples/regionsync/limits.yaml"))
		if says := errs.String(); code != 1 ||
			!strings.Contains(says, "s3://quotas/eu-central-1/snapshot.json: S3 does not answer: ") ||
			strings.Contains(out.String()+says, "DynamoDB") {
			t.Errorf("%s: exit code %d\n%s%s", line, code, &out, &errs)
		}
	}
}
