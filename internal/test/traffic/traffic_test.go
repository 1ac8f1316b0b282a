package traffic_test

import (
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/test/traffic"
)

// short are the rows of the usual form.
var short = regexp.MustCompile(`^open: (2 x 40|16 x 40)/s, small bucket, |^closed: (4 x 16|16 x 1) `)

// pending are the rows whose bars are not reached yet, or not by all seeds.
var pending = regexp.MustCompile(`^open: .*(large bucket|partition|16 x 10/s|x 150/s|2 x 400/s|16 x 100/s)|` +
	`^siblings|^closed: 1 x 64|^crowd|^throttled`)

// TestBars offers loads and holds their figures against the bars.
func TestBars(t *testing.T) {
	seeds := longform.Count(t, "seeds of each load", 3, 1)
	for _, row := range traffic.Rows() {
		if pending.MatchString(row.Name) || !longform.Wanted() && !short.MatchString(row.Name) {
			continue
		}
		for seed := range uint64(seeds) {
			t.Run(row.Name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					row.Load.Seed = seed
					result, err := traffic.Run(t.Context(), row.Load, traffic.Sluice)
					if err != nil {
						t.Fatal(err)
					}
					t.Log(result)
					if missed := row.Missed(result); missed != "" {
						t.Error(missed)
					}
				})
			})
		}
	}
}
