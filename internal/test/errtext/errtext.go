// Package errtext describes errors for tests by what they are: their type and their fields. A test that
// compares descriptions does not fail when the wording of an error changes. The wording itself is under test
// in one place per package.
package errtext

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Of describes err. A nil error has an empty description. These types of package runtime have one of their
// own:
//
//	DeniedError            denied gpt-4 user-1 tpm 3/10 1m30s, " deadline" if Wait gave up, " unsynced"
//	CostTooLargeError  exceeds burst gpt-4 user-1 tpm 11/10
//	InvalidError           invalid gpt-4 id user "a#b": the field without its "of"
//	UnavailableError       unavailable gpt-4 2: and its cause; "throttled" stands behind the number of attempts
//	ContendedError         contended gpt-4 user-1 8, and the number of conflicts behind a slash
//	ConflictError          conflict gpt-4 project-1
//	QueueFullError         queue full gpt-4 user-1 10000
//	SetupError             setup: what | its cause | what to do
//
// A codec.AttributeError is described by the attribute and what the item has there: its value, or its type.
// Joined errors stand on a line each.
//
// When runtime wraps an error of a context, or of a MaxWait that is over, the description is the cause, with
// the names and durations that runtime's text adds. Any other error is described by its text; an error
// wrapped at its end is described in turn.
func Of(err error) string {
	switch e := err.(type) { //nolint:errorlint // a description says what wraps what
	case nil:
		return ""
	case *runtime.DeniedError:
		return denied(e)
	case *runtime.CostTooLargeError:
		return words("exceeds burst", e.Resource, e.Entity, e.Limit, fmt.Sprintf("%d/%d", e.Requested, e.Burst))
	case *runtime.InvalidError:
		return invalid(e)
	case *runtime.UnavailableError:
		return unavailable(e)
	case *runtime.ContendedError:
		return contended(e)
	case *runtime.ConflictError:
		return words("conflict", e.Resource, e.At)
	case *runtime.QueueFullError:
		return words("queue full", e.Resource, e.Entity, strconv.Itoa(e.MaxWaiters))
	case *runtime.SetupError:
		return setup(e)
	case *codec.AttributeError:
		return attribute(e)
	}
	for _, cause := range []error{runtime.ErrMaxWait, context.Canceled, context.DeadlineExceeded} {
		if outer, ok := strings.CutPrefix(err.Error(), "sluice:"); ok && errors.Is(err, cause) {
			return words(cause.Error(), names(outer)...)
		}
	}
	if text, ok := several(err); ok {
		return text
	}
	if inner := errors.Unwrap(err); inner != nil {
		if outer, ok := strings.CutSuffix(err.Error(), inner.Error()); ok {
			return outer + Of(inner)
		}
	}
	return err.Error()
}

// Reason describes err as Of does, with the reason of an InvalidError behind it.
func Reason(err error) string {
	if e, ok := errors.AsType[*runtime.InvalidError](err); ok {
		return words(Of(err), e.Reason)
	}
	return Of(err)
}

// several describes the errors that errors.Join has joined.
func several(err error) (string, bool) {
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return "", false
	}
	var texts, descriptions []string
	for _, one := range all.Unwrap() {
		texts, descriptions = append(texts, one.Error()), append(descriptions, Of(one))
	}
	return strings.Join(descriptions, "\n"), strings.Join(texts, "\n") == err.Error()
}

func denied(e *runtime.DeniedError) string {
	s := words("denied", e.Resource, e.Entity, e.Limit, fmt.Sprintf("%d/%d", e.Available, e.Requested),
		e.RetryAfter.String())
	if errors.Is(e, context.DeadlineExceeded) {
		s += " deadline"
	}
	if e.Unsynced {
		s += " unsynced"
	}
	return s
}

func invalid(e *runtime.InvalidError) string {
	value := ""
	if e.Value != "" {
		value = strconv.Quote(e.Value)
	}
	return words("invalid", append(append([]string{e.Resource}, names(e.Field)...), value)...)
}

func unavailable(e *runtime.UnavailableError) string {
	attempts, throttled := "", ""
	if e.Attempts > 0 {
		attempts = strconv.Itoa(e.Attempts)
	}
	if e.Throttled {
		throttled = "throttled"
	}
	resource := strings.Join(names(e.Resource), " ")
	return words("unavailable", resource, attempts, throttled) + ": " + Of(e.Err)
}

func attribute(e *codec.AttributeError) string {
	got := e.Got // a quoted value, "missing", or the type in the last of its words
	if !strings.HasPrefix(got, `"`) {
		got = got[strings.LastIndexByte(got, ' ')+1:]
	}
	return words("attribute", e.Attr, got)
}

func contended(e *runtime.ContendedError) string {
	attempts := strconv.Itoa(e.Attempts)
	if e.Conflicts > 0 {
		attempts += "/" + strconv.Itoa(e.Conflicts)
	}
	return words("contended", e.Resource, e.Entity, attempts)
}

func setup(e *runtime.SetupError) string {
	parts := []string{e.What}
	for _, part := range []string{Of(e.Err), e.Do} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return "setup: " + strings.Join(parts, " | ")
}

// said are the words of runtime's texts and fields, and of the causes in them, that are no names and no
// durations.
var said = strings.Fields("of the for MaxWait is over context canceled deadline exceeded")

// names returns the names and the durations in a text.
func names(text string) []string {
	all := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" :;,()", r) })
	return slices.DeleteFunc(all, func(word string) bool { return slices.Contains(said, word) })
}

// words joins what is not empty by spaces.
func words(first string, rest ...string) string {
	for _, word := range rest {
		if word != "" {
			first += " " + word
		}
	}
	return first
}
