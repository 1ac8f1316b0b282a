package operator

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// TestDefinition creates a table as it was asked for, and takes one that is there for nothing else.
func TestDefinition(t *testing.T) {
	client := memdynamo.New().Client()
	d := Definition{Table: "limits", ReadUnits: 5, WriteUnits: 6, Protected: true}
	for _, created := range []bool{true, false} {
		if got, err := d.CreateTable(t.Context(), client); got != created || err != nil {
			t.Fatalf("created %v, %v", got, err)
		}
	}
	out, err := client.DescribeTable(t.Context(), &dynamodb.DescribeTableInput{TableName: &d.Table})
	if err != nil {
		t.Fatal(err)
	}
	const want = "provisioned: 5 read and 6 write units, GSI1 5 and 6, GSI2 5 and 6"
	if got := billing(out.Table); got != want || !aws.ToBool(out.Table.DeletionProtectionEnabled) {
		t.Errorf("billing %q, protected %v", got, out.Table.DeletionProtectionEnabled)
	}

	for _, test := range []struct {
		asked Definition
		err   string
	}{
		{Definition{Table: "limits"}, ""},
		{Definition{Table: "limits", ReadUnits: 5, WriteUnits: 7},
			"setup: table limits: it is there already, and its billing is " + want +
				", not 5 read and 7 write units | leave the units out, or change its billing by UpdateTable"},
		{Definition{Table: "limits", ReadUnits: 5}, "setup: table limits: 5 read and 0 write units: " +
			"want both above 0, or neither for a table on demand | correct the call"},
		{Definition{Table: "limits", ReadUnits: -1, WriteUnits: -1},
			"setup: table limits: -1 read and -1 write units: " +
				"want both above 0, or neither for a table on demand | correct the call"},
		{Definition{Table: "limits", Recoverable: true},
			"setup: table limits: this DynamoDB has no point-in-time recovery | " +
				"leave it out here: engines for tests have none"},
		{Definition{Table: "bare"}, ""},
		{Definition{Table: "bare", ReadUnits: 1, WriteUnits: 1, Protected: true},
			"setup: table bare: it is there already, and its billing is on demand, " +
				"not 1 read and 1 write units | leave the units out, or change its billing by UpdateTable\n" +
				"setup: table bare: it is there already, and not protected from deletion | " +
				"run `aws dynamodb update-table --table-name bare --deletion-protection-enabled`"},
	} {
		_, err := test.asked.CreateTable(t.Context(), client)
		if test.err == "" {
			if err != nil {
				t.Errorf("%+v: %v", test.asked, err)
			}
			continue
		}
		if got := errtext.Of(err); got != test.err {
			t.Errorf("%+v: got\n%s\nwant\n%s", test.asked, got, test.err)
		}
	}
}

// recovering is an engine that has point-in-time recovery, of which it is not ready for the first so many
// calls.
type recovering struct {
	aws.HTTPClient
	unready int
	bodies  []string
}

func (r *recovering) Do(q *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(q.Header.Get("X-Amz-Target"), ".UpdateContinuousBackups") {
		return r.HTTPClient.Do(q)
	}
	body, err := io.ReadAll(q.Body)
	if err != nil {
		return nil, err
	}
	r.bodies = append(r.bodies, string(body))
	status, text := http.StatusOK, "{}"
	if len(r.bodies) <= r.unready {
		status, text = http.StatusBadRequest,
			`{"__type":"com.amazonaws.dynamodb.v20120810#ContinuousBackupsUnavailableException","message":"Backups `+
				`are being enabled"}`
	}
	return &http.Response{
		StatusCode: status,
		Header:     http.Header{},
		Body:       io.NopCloser(bytes.NewBufferString(text)),
		Request:    q,
	}, nil
}

// TestRecoverable: AWS is asked for point-in-time recovery until it is ready to switch it on, and not for
// ever.
func TestRecoverable(t *testing.T) {
	for _, test := range []struct {
		unready, calls int
		failed         bool
	}{{0, 1, false}, {10, 11, false}, {100, 30, true}} {
		synctest.Test(t, func(t *testing.T) {
			o := memdynamo.New().Client().Options()
			service := &recovering{HTTPClient: o.HTTPClient, unready: test.unready}
			o.HTTPClient = service
			_, err := Definition{Table: "limits", Recoverable: true}.CreateTable(t.Context(), dynamodb.New(o))
			if (err != nil) != test.failed || len(service.bodies) != test.calls {
				t.Errorf("%d calls, want %d; error %v", len(service.bodies), test.calls, err)
			}
			const want = `{"PointInTimeRecoverySpecification":{"PointInTimeRecoveryEnabled":true},` +
				`"TableName":"limits"}`
			if service.bodies[0] != want {
				t.Errorf("sent %s\nwant %s", service.bodies[0], want)
			}
		})
	}
	if in := (Definition{Table: "limits"}).Recovery(); in != nil {
		t.Errorf("a table that need not be recoverable asks for %v", in)
	}
	if in := (Definition{Table: "limits", ReadUnits: 1, WriteUnits: 1}).Create(); in.BillingMode !=
		types.BillingModeProvisioned {
		t.Errorf("billing mode %s", in.BillingMode)
	}
}
