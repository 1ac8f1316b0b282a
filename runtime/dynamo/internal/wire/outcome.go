package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Outcome is what is known of a write once its reply is there, or is not.
type Outcome uint8

const (
	Applied   Outcome = iota
	Refused           // its condition failed: not applied
	Conflict          // it met a transaction on the item: not applied
	Throttled         // not applied for want of throughput
	NotSent           // never sent
	Unknown           // it may have been applied: no reply, or a server's failure
	Failed            // not applied, and trying again will not help
)

// String returns the outcome as observers see it.
func (o Outcome) String() string {
	return [...]string{"applied", "refused", "conflict", "throttled", "unapplied", "unknown", "failed"}[o]
}

// Classify sorts an error of a write. A refusal comes with the item that the condition failed on, nil for none.
func Classify(err error) (Outcome, codec.Item) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return Refused, failed.Item
	}
	if IsUnsent(err) {
		return classifyUnsent(err), nil
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		switch {
		case code == "TransactionConflictException", code == "ReplicatedWriteConflictException", code == "TransactionInProgressException":
			return Conflict, nil
		case isThrottling(code), status(err) == http.StatusTooManyRequests:
			return Throttled, nil
		case api.ErrorFault() == smithy.FaultServer, status(err) >= http.StatusInternalServerError:
			return Unknown, nil
		}
		return Failed, nil
	}
	return classifyTransport(err), nil
}

// Codes of a cancelled transaction's reasons.
const (
	ConditionFailed = "ConditionalCheckFailed"
	ItemInConflict  = "TransactionConflict"
)

// ClassifyTransaction is classify for a transaction of n items. A cancelled one has a reason for each: a refusal, which
// comes with images, counts for more than what would only have had it wait.
func ClassifyTransaction(err error, n int) (Outcome, error) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		o, _ := Classify(err)
		return o, err
	}
	if len(cancelled.CancellationReasons) != n {
		return Unknown, fmt.Errorf("%d reasons for %d items: %w", len(cancelled.CancellationReasons), n, err)
	}
	found := Failed
	for _, reason := range cancelled.CancellationReasons {
		switch code := aws.ToString(reason.Code); {
		case code == ConditionFailed:
			return Refused, err
		case code == ItemInConflict:
			found = Conflict
		case isThrottling(code) && found == Failed:
			found = Throttled
		}
	}
	return found, err
}

// isThrottling reports that a code is one of throttling: of an error, or of a cancelled transaction's reason, where throttling by a
// mode's own limits has other names.
func isThrottling(code string) bool {
	_, ok := awsretry.DefaultThrottleErrorCodes[code]
	return ok || code == "ThrottlingError" || code == "ProvisionedThroughputExceeded"
}

// IsUnsent reports that the client gave up before the request was on its way: no credentials, no region, a context that was
// over. The SDK wraps whatever the transport returns in a ResponseError. Below a failure of credentials there may be one
// too, but it is another service's, and says nothing of this request.
func IsUnsent(err error) bool {
	if _, ok := errors.AsType[*smithy.OperationError](err); !ok {
		return false
	}
	_, sent := errors.AsType[*smithyhttp.ResponseError](err)
	return !sent || noCredentials(err)
}

// classifyUnsent sorts errors of requests that were not sent: they were not applied, and the question is whether trying
// again may help. Credentials may be late: a role's are renewed over the network.
func classifyUnsent(err error) Outcome {
	_, isNet := errors.AsType[net.Error](err)
	if isNet || noCredentials(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return NotSent
	}
	return Failed
}

// noCredentials reports that no credentials could be had. The SDK has no type for it.
func noCredentials(err error) bool { return strings.Contains(err.Error(), "get credentials: ") }

// status returns the HTTP status of the reply, which proxies send without a DynamoDB error; 0 without a reply.
func status(err error) int {
	if r, ok := errors.AsType[*smithyhttp.ResponseError](err); ok {
		return r.HTTPStatusCode()
	}
	return 0
}

// classifyTransport sorts errors that are not DynamoDB's own.
func classifyTransport(err error) Outcome {
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	if isDNS || isOp && op.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED) {
		return NotSent // no connection, so nothing was sent
	}
	_, isSend := errors.AsType[*smithyhttp.RequestSendError](err)
	_, isResponse := errors.AsType[*smithyhttp.ResponseError](err)
	_, isGarbled := errors.AsType[*smithy.DeserializationError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isSend, isResponse, isGarbled, isNet,
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return Unknown
	}
	return Failed // the client itself refused: credentials, region, endpoint
}
