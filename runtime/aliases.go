package runtime

import "github.com/sluice-go/sluice/runtime/store"

// Users name these types of package store through this package. Stores and generated code import package
// store itself.
type (
	// Store keeps buckets: dynamo.New and redisstore.New return one. Only this module's stores implement it.
	Store = store.Store
	// Entity is what a call charges, and its ancestors. Only generated kinds implement it, such as limits.User.
	Entity = store.Entity
	// Clock is time as the limiter sees it (WithClock): it dates refills and paces waits.
	Clock = store.Clock
	// Policy says what becomes of an acquire when the store cannot answer: Allow, Deny or Local.
	Policy = store.Policy
	// LimitName is the generated name of a limit, such as limits.GPT4TPM.
	LimitName = store.LimitName
	// Revision is what a reader of an override saw, for the write that follows.
	Revision = store.Revision
	// Observer has a function for each kind of outcome (WithObserver).
	Observer = store.Observer
	// Event is the outcome of an acquire, a wait, a settle or a release.
	Event = store.Event
	// StoreEvent is one request to the store.
	StoreEvent = store.StoreEvent
)

// The errors that stores return.
type (
	// DeniedError says that tokens are missing now, and when they will be there.
	DeniedError = store.DeniedError
	// Refusal is one limit of a DeniedError.
	Refusal = store.Refusal
	// CostTooLargeError says that the call can never be served as it is.
	CostTooLargeError = store.CostTooLargeError
	// InvalidError says that the caller's input is wrong. Nothing was charged or written.
	InvalidError = store.InvalidError
	// ContendedError says that no attempt was applied. Nothing was charged, and trying again is safe.
	ContendedError = store.ContendedError
	// UnavailableError says that the store did not answer in time or is down.
	UnavailableError = store.UnavailableError
	// SetupError says that the installation has to be fixed, and how.
	SetupError = store.SetupError
	// ConflictError says that an override was changed since it was read.
	ConflictError = store.ConflictError
	// UnknownNameError says that the catalog of a template does not have a name.
	UnknownNameError = store.UnknownNameError
	// UnknownPlanError says that an entity is on a plan of a newer program.
	UnknownPlanError = store.UnknownPlanError
)

// Policies.
const (
	Allow = store.Allow // admit: Lease.Degraded
	Deny  = store.Deny  // fail with the *UnavailableError
	Local = store.Local // decide by a bucket in this process, from the last image: Lease.Degraded if admitted
)
