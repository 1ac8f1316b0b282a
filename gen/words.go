package gen

import (
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Cure ends a message about text, which is none of the known names: with what was probably meant, or else with all there is.
func Cure(text string, known []string) string { return schema.Cure(text, known) }

// ParseCount reads a whole number as limits.yaml has it: digits, and '_' between digits. What int64 does not hold is
// math.MaxInt64. Why says what is wrong with text, in words that follow it, "" if nothing is.
func ParseCount(text string) (n int64, why string) { return schema.ParseCount(text) }

// ParsePeriod reads what every can be in limits.yaml: 90s, 1h30m, 1d12h. Why says what is wrong with text, in words that
// follow it, "" if nothing is.
func ParsePeriod(text string) (d time.Duration, why string) { return schema.ParsePeriod(text) }
