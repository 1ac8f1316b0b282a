package grpclimit_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/grpclimit"
)

// rowsOf are what docs/grpc.md has to say of errors: name, code, details and trailer.
func rowsOf(t *testing.T) [][]string {
	t.Helper()
	text, err := os.ReadFile("../../docs/grpc.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "|---|---|---|--:|\n")
	if !found {
		t.Fatal("docs/grpc.md has no table of errors")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var rows [][]string
	for row := range strings.Lines(table + "\n") {
		cells := strings.Split(strings.ReplaceAll(strings.Trim(row, "|\n"), "`", ""), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

// TestDocsErrors holds the table in docs/grpc.md against what clients get.
func TestDocsErrors(t *testing.T) {
	canceled, late := ended(t)
	known := map[string]struct {
		ctx context.Context
		err error
	}{
		"DeniedError":                      {t.Context(), everybody},
		"CostTooLargeError":                {t.Context(), &runtime.CostTooLargeError{}},
		"InvalidError":                     {t.Context(), &runtime.InvalidError{}},
		"UnavailableError":                 {t.Context(), &runtime.UnavailableError{}},
		"ContendedError":                   {t.Context(), &runtime.ContendedError{}},
		"SetupError":                       {t.Context(), &runtime.SetupError{}},
		"the caller has gone":              {canceled, context.Canceled},
		"the caller's deadline has passed": {late, context.DeadlineExceeded},
	}
	seen := 0
	for _, row := range rowsOf(t) {
		for name := range strings.SplitSeq(row[0], ", ") {
			of, ok := known[name]
			if !ok {
				continue
			}
			seen++
			sent := &transport{}
			err := grpclimit.Error(grpc.NewContextWithServerTransportStream(of.ctx, sent), of.err)
			var details []string
			for _, d := range status.Convert(err).Details() {
				details = append(details, strings.TrimPrefix(fmt.Sprintf("%T", d), "*errdetails."))
			}
			if code := strings.ReplaceAll(row[1], "_", ""); !strings.EqualFold(code,
				strings.Replace(status.Code(err).String(), "Canceled", "Cancelled", 1)) {
				t.Errorf("%s: %s, want %v", name, row[1], status.Code(err))
			}
			for _, d := range []string{"QuotaFailure", "RetryInfo"} {
				if strings.Contains(row[2], d) != strings.Contains(fmt.Sprint(details), d) {
					t.Errorf("%s: %s, want %v", name, row[2], details)
				}
			}
			pushed := strings.Join(sent.trailer["grpc-retry-pushback-ms"], "|")
			if first, _, _ := strings.Cut(row[3], ", "); first != pushed &&
				(first != "as RetryInfo" || pushed != "4001") {
				t.Errorf("%s: %s, want %s", name, row[3], pushed)
			}
		}
	}
	if seen != len(known) {
		t.Errorf("the table has %d of %d errors", seen, len(known))
	}
}
