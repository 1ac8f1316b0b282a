package usage

import "testing"

// TestReadRefuses: a question that no window answers is a mistake, not an entity that consumed nothing.
func TestReadRefuses(t *testing.T) {
	for want, q := range map[string]Question{
		"usage.Read: the question names no entity, such as user-123": {Span: Hour},
		`usage.Read: span "", want hour or day`:                      {Entity: "user-123"},
		`usage.Read: span "week", want hour or day`:                  {Entity: "user-123", Span: "week"},
	} {
		n := 0
		for _, err := range Read(t.Context(), nil, "table", q) {
			if n++; err == nil || err.Error() != want {
				t.Errorf("got %v, want %s", err, want)
			}
		}
		if n != 1 {
			t.Errorf("%+v: %d answers", q, n)
		}
	}
}
