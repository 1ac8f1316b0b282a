package program

import "fmt"

// usageError is a mistake in the command line: the exit code is 2.
type UsageError struct{ text string }

// Error says what is wrong.
func (e UsageError) Error() string { return e.text }

// usagef returns a usageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// formatted is an error whose text is printed as it is, such as the mistakes of a schema, each with its place in the file.
type Formatted struct{ error }

// asIs returns err as an error whose text is printed as it is.
func AsIs(err error) error { return Formatted{err} }

// Unwrap returns the error.
func (e Formatted) Unwrap() error { return e.error }
