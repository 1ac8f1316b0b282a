package usage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"
	"github.com/google/go-cmp/cmp"
)

// lambdaEvent is a batch as Lambda decodes it: of user-1's bucket, which takes a token of rpm with each
// record; those of bad have no old image.
func lambdaEvent(t *testing.T, from, to int, bad ...int) events.DynamoDBEvent {
	t.Helper()
	image := func(tc int) string {
		return fmt.Sprintf(`{"PK": {"S": "ENTITY#user-1"}, "SK": {"S": "#BUCKET#gpt-4"}, `+
			`"entity_id": {"S": "user-1"}, "b_rpm_tc": {"N": "%d"}}`, 1000*tc)
	}
	var records []string
	for i := from; i <= to; i++ {
		old := `"OldImage": ` + image(i-1) + ", "
		for _, b := range bad {
			if b == i {
				old = ""
			}
		}
		records = append(records, fmt.Sprintf(
			`{"eventName": "MODIFY", "dynamodb": {"ApproximateCreationDateTime": %d, `+
				`"SequenceNumber": "%d00", %s"NewImage": %s}}`,
			noon.Unix(), i, old, image(i)))
	}
	var event events.DynamoDBEvent
	if err := json.Unmarshal([]byte(`{"Records": [`+strings.Join(records, ", ")+"]}"), &event); err != nil {
		t.Fatal(err)
	}
	return event
}

// TestHandleLambda: a batch that comes again, in part and with more behind it, counts once; what fails is
// told as Lambda takes it.
func TestHandleLambda(t *testing.T) {
	l := newLedger(t)
	broken, api := errors.New("broken"), &tap{API: l.client}
	a := l.aggregator(t, api)
	handle := func(event events.DynamoDBEvent) string {
		t.Helper()
		response, err := a.HandleLambda(t.Context(), event)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(response)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	all := `{"batchItemFailures":[]}`
	if got := handle(lambdaEvent(t, 1, 4)); got != all && got != `{"batchItemFailures":null}` {
		t.Errorf("got %s", got)
	}
	handle(lambdaEvent(t, 3, 6))
	handle(lambdaEvent(t, 1, 6))
	api.fails = func(int) (before, after error) { return broken, nil }
	if got, want := handle(lambdaEvent(t, 5, 9)),
		`{"batchItemFailures":[{"itemIdentifier":"500"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	api.fails = nil
	handle(lambdaEvent(t, 5, 9, 8))
	if diff := cmp.Diff(map[string]map[string]int64{"user-1 2030-01-02T12": {"rpm": 8000, "writes": 8}},
		l.windows(t, true)); diff != "" {
		t.Errorf("hours (-want +got):\n%s", diff)
	}
	if len(l.poison) != 1 || !strings.HasPrefix(l.poison[0], "800: ") {
		t.Errorf("put aside: %q", l.poison)
	}
	a.config.Poisoned = func(context.Context, Poison) error { return broken }
	if got, want := handle(lambdaEvent(t, 10, 12, 11)),
		`{"batchItemFailures":[{"itemIdentifier":"1100"}]}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := l.windows(t, true)["user-1 2030-01-02T12"]["rpm"]; got != 9000 {
		t.Errorf("%d of rpm, want what is ahead of a record that cannot be put aside", got)
	}
}
