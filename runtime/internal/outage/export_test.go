package outage

import "fmt"

// Report returns the next report to the observer.
func (f *Fallback) Report() string {
	open, changed := f.unreported()
	return map[bool]string{true: fmt.Sprint("open: ", open)}[changed]
}
