package format

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/gen"
)

// mostDays bounds ages to a century.
const mostDays = 36_500

// ParseAge reads an age, such as 12h or 400d. It accepts the periods of limits.yaml, and more days. A
// non-empty text says what is wrong.
func ParseAge(text string) (time.Duration, string) {
	digits, days := strings.CutSuffix(text, "d")
	n, err := strconv.ParseUint(digits, 10, 64)
	if !days || err != nil || n == 0 {
		return gen.ParsePeriod(text)
	}
	if n > mostDays {
		return 0, fmt.Sprintf("is too long: it can be at most %dd", mostDays)
	}
	return time.Duration(n) * 24 * time.Hour, ""
}
