package dynamolocal

import (
	"strings"
	"testing"
)

func TestTailKeepsTheEnd(t *testing.T) {
	var out tail
	for range 3 {
		_, _ = out.Write([]byte(strings.Repeat("a", tailSize)))
	}
	_, _ = out.Write([]byte("the end\n"))
	got := out.String()
	if len(got) >= tailSize || !strings.HasSuffix(got, "athe end") {
		t.Errorf("kept %d bytes, ending in %q", len(got), got[len(got)-10:])
	}
}
