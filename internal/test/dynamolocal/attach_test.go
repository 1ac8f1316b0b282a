package dynamolocal

import (
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestAttachToNobody: a port that refuses is given up long before one that is silent.
func TestAttachToNobody(t *testing.T) {
	engine := httptest.NewServer(nil)
	engine.Close() // its port refuses from now on
	began := time.Now()
	_, err := attach(t.Context(), engine.URL, 20*time.Millisecond)
	want := "use the DynamoDB at " + engine.URL +
		" (SLUICE_DYNAMODB_ENDPOINT): nobody has listened there for 20ms: connection refused"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v\nwant %s", err, want)
	}
	if took := time.Since(began); took > startLimit/2 {
		t.Errorf("it took %v", took)
	}
}
