package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// FuzzDecode: a body is an answer to its mistake, or JSON of the members that the path takes.
func FuzzDecode(f *testing.F) {
	for _, text := range []string{
		``, `{}`, `[]`, `{"entity": {"user": "1"}, "cost": {"tpm": 1, "month": "0.5"}, "wait": "5s"}`,
		`[{"resource": "api", "entity": {"user": "\u00e9"}, "usage": {"input": 1e3}}]`,
		`{"entity": {"user": "1", "user": "2"}}`, `{"wait": "-1s"}`, strings.Repeat(`[`, 1000),
		`[` + strings.Repeat(`{},`, mostClaims) + `{}]`,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		one, err := decode(text, memberEntity, memberCost, memberUsage, memberWait)
		check(t, text, err)
		if err == nil && (one.wait < 0 || one.wait > mostWait || one.resource != "") {
			t.Errorf("%q: %+v", text, one)
		}
		all, err := decodeAll(text, memberResource, memberEntity, memberCost, memberUsage)
		if check(t, text, err); len(all) > mostClaims {
			t.Errorf("%d claims", len(all))
		}
	})
}

// check fails unless err is an answer, or text is JSON.
func check(t *testing.T, text []byte, err error) {
	t.Helper()
	if err == nil {
		if len(text) > 0 && !json.Valid(text) {
			t.Errorf("%q is read, and is no JSON", text)
		}
		return
	}
	p, ok := errors.AsType[*problem](err)
	if !ok || p.Status != http.StatusBadRequest || len(p.Detail) > 500 {
		t.Errorf("%q: %v", text, err)
	}
}
