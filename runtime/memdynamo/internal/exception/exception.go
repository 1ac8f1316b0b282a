// Package exception is how DynamoDB says no: the exceptions of its API, by code and message.
package exception

import (
	"errors"
	"fmt"
	"net/http"
)

// Codes of exceptions, without the prefix they carry on the wire.
const (
	ConditionalCheckFailed = "ConditionalCheckFailedException"
	ExpiredIterator        = "ExpiredIteratorException"
	IdempotentMismatch     = "IdempotentParameterMismatchException"
	InternalServerError    = "InternalServerError"
	LimitExceeded          = "LimitExceededException"
	MissingAuthentication  = "MissingAuthenticationTokenException"
	ProvisionedExceeded    = "ProvisionedThroughputExceededException"
	ResourceInUse          = "ResourceInUseException"
	ResourceNotFound       = "ResourceNotFoundException"
	Serialization          = "SerializationException"
	TableNotFound          = "TableNotFoundException"
	TransactionCanceled    = "TransactionCanceledException"
	TransactionConflict    = "TransactionConflictException"
	TransactionInProgress  = "TransactionInProgressException"
	TrimmedDataAccess      = "TrimmedDataAccessException"
	UnknownOperation       = "UnknownOperationException"
	Validation             = "ValidationException"
)

// Error is an exception as a client sees it.
type Error struct {
	Code    string
	Message string
	Fields  Fields // nil, or what the exception carries beside its message
	// whether it is of the input, so that even a transaction is refused with it and not cancelled for it
	Input bool
}

// Fields are the members of an exception beside its message, such as CancellationReasons.
type Fields interface {
	// AppendFields appends members as JSON, each preceded by a comma.
	AppendFields([]byte) []byte
}

// New returns the exception of that code.
func New(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Invalid returns a ValidationException.
func Invalid(format string, args ...any) *Error { return New(Validation, format, args...) }

// Is reports whether err is the exception of that code.
func Is(err error, code string) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == code
}

// OfInput returns the exception as one of the input.
func (e *Error) OfInput() *Error {
	e.Input = true
	return e
}

func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Status is the HTTP status that carries the exception.
func (e *Error) Status() int {
	if e.Code == InternalServerError {
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}
