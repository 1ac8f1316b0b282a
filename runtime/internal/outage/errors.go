package outage

import (
	"errors"

	"github.com/sluice-go/sluice/runtime/store"
)

// Of returns the *store.UnavailableError in err. It returns none if err is also a *store.SetupError: then the
// installation is the cause.
func Of(err error) (*store.UnavailableError, bool) {
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return nil, false
	}
	return errors.AsType[*store.UnavailableError](err)
}

// Decided reports whether the store looked at a call's buckets before it returned err.
func Decided(err error) bool { return err == nil || refused(err) }

// refused reports whether err says that the store applied no attempt.
func refused(err error) bool {
	if _, ok := errors.AsType[*store.DeniedError](err); ok {
		return true
	}
	_, ok := errors.AsType[*store.ContendedError](err)
	return ok
}

// LetsThrough reports whether shadow mode turns err into a lease: it is a refusal by a limit, or the store
// does not answer.
func LetsThrough(err error) bool {
	if _, down := Of(err); down {
		return true
	}
	_, exceeds := errors.AsType[*store.CostTooLargeError](err)
	return exceeds || refused(err)
}
