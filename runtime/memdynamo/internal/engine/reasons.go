package engine

import (
	"errors"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// Codes of reasons that are no exceptions.
const (
	codeNone               = "None"
	codeConditionFailed    = "ConditionalCheckFailed"
	codeConflict           = "TransactionConflict"
	codeProvisioned        = "ProvisionedThroughputExceeded"
	codeThrottling         = "ThrottlingError"
	codeValidation         = "ValidationError"
	onDemandThrottlingText = "Throughput exceeds the current capacity of your table or index. DynamoDB is " +
		"automatically scaling " +
		"your table or index so please try again shortly."
)

// reason is why an action of a transaction is not done. The zero value is that nothing speaks against it.
type reason struct {
	code, message string
	item          value.Map
}

// reasonOf returns the reason that an action's error is.
func reasonOf(err error) reason {
	if err == nil {
		return reason{}
	}
	e, ok := errors.AsType[*exception.Error](err)
	if !ok {
		return reason{code: codeValidation, message: err.Error()}
	}
	r := reason{code: codeValidation, message: e.Message}
	if e.Code == exception.ConditionalCheckFailed {
		r.code = codeConditionFailed
		if f, ok := e.Fields.(itemField); ok {
			r.item = f.item
		}
	}
	return r
}

// ofInput reports whether err is of the input: no transaction is cancelled for it, it is not even begun.
func ofInput(err error) bool {
	e, ok := errors.AsType[*exception.Error](err)
	return ok && e.Input
}

// conflictReason is that the item is another transaction's.
func conflictReason() reason { return reason{code: codeConflict, message: conflictText} }

// throughputReason is that the table has no units left.
func throughputReason(t *tableState) reason {
	if t.billing == onDemand {
		return reason{code: codeThrottling, message: onDemandThrottlingText}
	}
	return reason{code: codeProvisioned, message: provisionedExceededText}
}

// reasons are those of a transaction's actions, in their order.
type reasons []reason

// any reports whether any speaks against the transaction.
func (rs reasons) any() bool {
	for _, r := range rs {
		if r.code != "" {
			return true
		}
	}
	return false
}

// has reports whether one has that code.
func (rs reasons) has(code string) bool {
	for _, r := range rs {
		if r.code == code {
			return true
		}
	}
	return false
}

// cancelled is the exception for a transaction that was cancelled for those reasons.
func (rs reasons) cancelled() error {
	codes := make([]string, len(rs))
	for i, r := range rs {
		codes[i] = r.name()
	}
	e := exception.New(exception.TransactionCanceled,
		"Transaction cancelled, please refer cancellation reasons for specific reasons [%s]",
		strings.Join(codes, ", "))
	e.Fields = rs
	return e
}

func (r reason) name() string {
	if r.code == "" {
		return codeNone
	}
	return r.code
}

// AppendFields appends the reasons.
func (rs reasons) AppendFields(b []byte) []byte {
	b = append(b, `,"CancellationReasons":[`...)
	for _, r := range rs {
		b = append(appendElement(b), '{')
		b = value.AppendString(appendMember(b, "Code"), r.name())
		if r.message != "" {
			b = value.AppendString(appendMember(b, "Message"), r.message)
		}
		if r.item != nil {
			b = value.AppendMap(appendMember(b, "Item"), r.item)
		}
		b = append(b, '}')
	}
	return append(b, ']')
}
