package connect

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestBrokenBody: a reply that breaks off is no answer, and one that was read to its end is.
func TestBrokenBody(t *testing.T) {
	broken := errors.New("connection reset")
	for name, test := range map[string]struct {
		body     io.Reader
		answered bool
	}{
		"whole":      {strings.NewReader("{}"), true},
		"broken":     {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(broken)), false},
		"ends early": {io.MultiReader(strings.NewReader("{"), iotest.ErrReader(io.ErrUnexpectedEOF)), false},
	} {
		var answers []bool
		b := &boundedBody{ReadCloser: io.NopCloser(test.body), ctx: t.Context(), alive: func() {},
			done: func(answered bool) { answers = append(answers, answered) }}
		_, _ = io.ReadAll(b)
		if err := b.Close(); err != nil || len(answers) != 1 || answers[0] != test.answered {
			t.Errorf("%s: %v, answered %v; want %v", name, err, answers, test.answered)
		}
	}
}
