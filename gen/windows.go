package gen

import "github.com/sluice-go/sluice/gen/internal/window"

// Window says when the whole allowance of a limit comes back.
type Window = window.Window

// The units of a Window.
const (
	WindowDay      = window.Day
	WindowWeek     = window.Week
	WindowMonth    = window.Month
	WindowQuarter  = window.Quarter
	WindowYear     = window.Year
	WindowFirstUse = window.FirstUse
	WindowNever    = window.Never
)
