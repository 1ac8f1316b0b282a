package gen

import (
	"time"

	"github.com/sluice-go/sluice/gen/internal/decimal"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// Cure returns the end of a message about text, which is none of the known names: the one that was probably
// meant, or else all of them.
func Cure(text string, known []string) string { return schema.Cure(text, known) }

// ParseCount reads a whole number as limits.yaml has it: digits, and '_' between digits. A number that int64
// does not hold becomes math.MaxInt64. why is the mistake in text, in words that follow it, or "".
func ParseCount(text string) (n int64, why string) { return schema.ParseCount(text) }

// ParseAmount reads an amount of money as limits.yaml has it, in nano-units: 12.50. One that int64 does not
// hold becomes math.MaxInt64. why is the mistake in text, in words that follow it, or "".
func ParseAmount(text string) (nanos int64, why string) { return schema.ParseAmount(text) }

// ParsePeriod reads a period as the key every of limits.yaml has it: 90s, 1h30m, 1d12h. why is the mistake in
// text, in words that follow it, or "".
func ParsePeriod(text string) (d time.Duration, why string) { return schema.ParsePeriod(text) }

// ParsePrice reads the price of one unit as limits.yaml has it, such as 2.50/1M, in pico-units. why is the
// mistake in text, in words that follow it, or "".
func ParsePrice(text string) (picos int64, why string) {
	picos, _, why = decimal.Price(text)
	return picos, why
}

// PriceText writes the price of one unit, in pico-units, as limits.yaml has it.
func PriceText(picos int64) string { return decimal.TextOfPrice(picos) }
