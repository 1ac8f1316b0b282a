package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// outcome is what is known of a write once its reply is there, or is not.
type outcome uint8

const (
	applied   outcome = iota
	refused           // its condition failed: not applied
	conflict          // it met a transaction on the item: not applied
	throttled         // not applied for want of throughput
	unapplied         // never sent
	unknown           // it may have been applied: no reply, or a server's failure
	fatal             // not applied, and trying again will not help
)

// String returns the outcome as observers see it.
func (o outcome) String() string {
	return [...]string{"applied", "refused", "conflict", "throttled", "unapplied", "unknown", "failed"}[o]
}

// classify sorts an error of a write. A refusal comes with the item that the condition failed on, nil for none.
func classify(err error) (outcome, codec.Item) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return refused, failed.Item
	}
	if unsent(err) {
		return classifyUnsent(err), nil
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		switch {
		case code == "TransactionConflictException", code == "ReplicatedWriteConflictException", code == "TransactionInProgressException":
			return conflict, nil
		case slow(code), status(err) == http.StatusTooManyRequests:
			return throttled, nil
		case api.ErrorFault() == smithy.FaultServer, status(err) >= http.StatusInternalServerError:
			return unknown, nil
		}
		return fatal, nil
	}
	return classifyTransport(err), nil
}

// Codes of a cancelled transaction's reasons.
const (
	conditionFailed = "ConditionalCheckFailed"
	itemInConflict  = "TransactionConflict"
)

// classifyTransaction is classify for a transaction of n items. A cancelled one has a reason for each: a refusal, which
// comes with images, counts for more than what would only have had it wait.
func classifyTransaction(err error, n int) (outcome, error) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		o, _ := classify(err)
		return o, err
	}
	if len(cancelled.CancellationReasons) != n {
		return unknown, fmt.Errorf("%d reasons for %d items: %w", len(cancelled.CancellationReasons), n, err)
	}
	found := fatal
	for _, reason := range cancelled.CancellationReasons {
		switch code := aws.ToString(reason.Code); {
		case code == conditionFailed:
			return refused, err
		case code == itemInConflict:
			found = conflict
		case slow(code) && found == fatal:
			found = throttled
		}
	}
	return found, err
}

// slow reports that a code is one of throttling: of an error, or of a cancelled transaction's reason, where throttling by a
// mode's own limits has other names.
func slow(code string) bool {
	_, ok := awsretry.DefaultThrottleErrorCodes[code]
	return ok || code == "ThrottlingError" || code == "ProvisionedThroughputExceeded"
}

// unsent reports that the client gave up before the request was on its way: no credentials, no region, a context that was
// over. The SDK wraps whatever the transport returns in a ResponseError. Below a failure of credentials there may be one
// too, but it is another service's, and says nothing of this request.
func unsent(err error) bool {
	if _, ok := errors.AsType[*smithy.OperationError](err); !ok {
		return false
	}
	_, sent := errors.AsType[*smithyhttp.ResponseError](err)
	return !sent || noCredentials(err)
}

// classifyUnsent sorts errors of requests that were not sent: they were not applied, and the question is whether trying
// again may help. Credentials may be late: a role's are renewed over the network.
func classifyUnsent(err error) outcome {
	_, isNet := errors.AsType[net.Error](err)
	if isNet || noCredentials(err) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return unapplied
	}
	return fatal
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
func classifyTransport(err error) outcome {
	op, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	if isDNS || isOp && op.Op == "dial" || errors.Is(err, syscall.ECONNREFUSED) {
		return unapplied // no connection, so nothing was sent
	}
	_, isSend := errors.AsType[*smithyhttp.RequestSendError](err)
	_, isResponse := errors.AsType[*smithyhttp.ResponseError](err)
	_, isGarbled := errors.AsType[*smithy.DeserializationError](err)
	_, isNet := errors.AsType[net.Error](err)
	switch {
	case isSend, isResponse, isGarbled, isNet,
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return unknown
	}
	return fatal // the client itself refused: credentials, region, endpoint
}

// explain makes an error that somebody has to mend a *runtime.SetupError that says what to do, if it is none yet.
func explain(table string, o outcome, err error) error {
	if _, ok := errors.AsType[*runtime.SetupError](err); ok {
		return err
	}
	if o == fatal || unsent(err) && noCredentials(err) && !errors.Is(err, context.Canceled) {
		return setupError(table, err)
	}
	return err
}

func setupError(table string, err error) error {
	if unsent(err) {
		setup := &runtime.SetupError{What: "the client could not send the request", Err: err, Do: "check its configuration"}
		if noCredentials(err) {
			setup.What = "no AWS credentials"
			setup.Do = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"
		}
		return setup
	}
	setup := &runtime.SetupError{What: "DynamoDB refused the call", Err: err, Do: "check the client's configuration"}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return setup
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		setup.What = fmt.Sprintf("table %s does not exist", table)
		setup.Do = fmt.Sprintf("run `sluice table create --table %s`, or check region and endpoint", table)
	case "AccessDeniedException":
		setup.What = "DynamoDB denies access to table " + table
		setup.Do = fmt.Sprintf("attach a policy that `sluice infra iam --table %s` prints: acquire's to a service, admin's to an operator", table)
	case "InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired":
		setup.What, setup.Do = "DynamoDB does not accept the signature", "renew the credentials, and set this host's clock by NTP"
	case "UnrecognizedClientException", "ExpiredTokenException", "MissingAuthenticationTokenException",
		"IncompleteSignature", "InvalidClientTokenId":
		setup.What, setup.Do = "DynamoDB does not accept the credentials", "renew them"
	case "ValidationException":
		setup.What = "DynamoDB does not accept the request"
		setup.Do = "run `sluice table check`, and `sluice generate` if the generated code is older than the runtime"
	}
	return setup
}
