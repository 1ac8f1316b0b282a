package program

import (
	"fmt"
	"strings"
)

// UsageError is a mistake in the command line. The exit code is 2.
type UsageError struct{ text string }

// Error returns the text.
func (e UsageError) Error() string { return e.text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// FormattedError is an error whose text is printed as it is, such as the mistakes of a schema with places.
type FormattedError struct{ error }

// AsIs returns err as a FormattedError.
func AsIs(err error) error { return FormattedError{err} }

// Unwrap returns the error.
func (e FormattedError) Unwrap() error { return e.error }

// Text returns the text of a library's error as a part of the command's own: without "sluice: ".
func Text(err error) string { return strings.TrimPrefix(err.Error(), "sluice: ") }
