package wire

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	awsretry "github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Outcome is what is known of a write after one attempt.
type Outcome uint8

// The outcomes. A write was not applied unless it says otherwise.
const (
	Applied   Outcome = iota // the write was applied
	Refused                  // its condition failed
	Conflict                 // it met a transaction on the item
	Throttled                // it was throttled
	NotSent                  // the request was not sent
	Unknown                  // it may have been applied: no reply, or a server's failure
	Failed                   // another attempt will not help
)

// String returns the outcome as observers get it.
func (o Outcome) String() string {
	return [...]string{"applied", "refused", "conflict", "throttled", "unapplied", "unknown", "failed"}[o]
}

// Classify returns the outcome of a write that ended with err. For a Refused one it also returns the item
// that the condition failed on, nil if there is none. A TransactionInProgressException counts as a Conflict,
// although an earlier copy of that transaction may still be applied. A sender that must know checks for it.
func Classify(err error) (Outcome, item.Item) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return Refused, failed.Item
	}
	if IsUnsent(err) {
		return classifyUnsent(err), nil
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		switch {
		case code == "TransactionConflictException", code == "ReplicatedWriteConflictException",
			code == "TransactionInProgressException":
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

// ClassifyTransaction is Classify for a transaction of n items. A cancelled one has a reason for each item.
// The outcome is Refused if any condition failed, else Conflict, else Throttled.
func ClassifyTransaction(err error, n int) (Outcome, error) {
	cancelled, ok := errors.AsType[*types.TransactionCanceledException](err)
	if !ok {
		o, _ := Classify(err)
		if o == Refused { // an update's answer, so not DynamoDB's
			o = Failed
		}
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

// AsSingle returns the error of a transaction of n items as one for which Classify gives the same outcome as
// ClassifyTransaction.
func AsSingle(err error, n int) error {
	if err == nil {
		return nil
	}
	o, err := ClassifyTransaction(err, n)
	switch o {
	case Refused:
		return &types.ConditionalCheckFailedException{}
	case Conflict:
		return &types.TransactionConflictException{Message: aws.String(err.Error())}
	case Throttled:
		return &types.ProvisionedThroughputExceededException{Message: aws.String(err.Error())}
	}
	return err
}

// isThrottling reports that a code is one of throttling: of an error, or of a cancelled transaction's reason,
// where throttling by a mode's own limits has other names.
func isThrottling(code string) bool {
	_, ok := awsretry.DefaultThrottleErrorCodes[code]
	return ok || code == "ThrottlingError" || code == "ProvisionedThroughputExceeded"
}

// IsUnsent reports that the client gave up before the request was on its way: no credentials, no region, a
// context that was over. The SDK wraps whatever the transport returns in a ResponseError. Below a failure of
// credentials there may be one too, but it is another service's, and says nothing of this request.
func IsUnsent(err error) bool {
	if _, ok := errors.AsType[*smithy.OperationError](err); !ok {
		return false
	}
	_, sent := errors.AsType[*smithyhttp.ResponseError](err)
	return !sent || noCredentials(err)
}

// classifyUnsent sorts errors of requests that were not sent: they were not applied, and the question is
// whether trying again may help.
func classifyUnsent(err error) Outcome {
	_, isNet := errors.AsType[net.Error](err)
	isOver := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	if credentialsLate(err) || !noCredentials(err) && (isNet || isOver) {
		return NotSent
	}
	return Failed
}

// A request without credentials is not sent. If the service that gives them did not answer, that is an
// outage (NotSent). If it answered that there are none, or nothing is configured that could give some,
// somebody has to fix that (Failed). The SDK's client of that service has repeated its call by then.

// credentialsCure is what to do about missing credentials.
const credentialsCure = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"

// noCredentials reports that no credentials could be had. The SDK has no type for it.
func noCredentials(err error) bool { return strings.Contains(err.Error(), "get credentials: ") }

// credentialsLate reports that no credentials could be had because the service that gives them did not
// answer:
//   - it could not be reached, or its reply did not arrive or was garbled;
//   - it failed (5xx), timed out (408), or throttled (429, or by an error code).
//
// An error of another kind is an answer: the provider itself returned it.
func credentialsLate(err error) bool {
	if !noCredentials(err) {
		return false
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		code := api.ErrorCode()
		// STS could not reach the issuer of the web identity token, and answers with 400.
		if api.ErrorFault() == smithy.FaultServer || isThrottling(code) || code == "IDPCommunicationError" {
			return true
		}
	}
	if replied, ok := errors.AsType[httpError](err); ok && replied.HTTPStatusCode() > 0 {
		code := replied.HTTPStatusCode()
		isAnswer := code >= http.StatusBadRequest && code < http.StatusInternalServerError
		return !isAnswer || code == http.StatusRequestTimeout || code == http.StatusTooManyRequests
	}
	// IMDS's client hides the cause if it gets no token and must not go on without one.
	if text := err.Error(); strings.Contains(text, "failed to get API token") {
		return !strings.Contains(text, "StatusCode: 4")
	}
	return isNetworkFailure(err)
}

// httpError is an error that a reply of some status became.
type httpError interface {
	error
	HTTPStatusCode() int
}

// isNetworkFailure reports that a request got no reply, or only a part of one. A failed system call alone
// does not count: a file may be what is missing.
func isNetworkFailure(err error) bool {
	_, isSend := errors.AsType[*smithyhttp.RequestSendError](err)
	_, isGarbled := errors.AsType[*smithy.DeserializationError](err)
	_, isURL := errors.AsType[*url.Error](err)
	_, isOp := errors.AsType[*net.OpError](err)
	_, isDNS := errors.AsType[*net.DNSError](err)
	n, isNet := errors.AsType[net.Error](err)
	return isSend || isGarbled || isURL || isOp || isDNS || isNet && n.Timeout() ||
		errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// explainLate returns err, for which credentialsLate holds, with what to do on a host without such a service.
func explainLate(err error) error {
	return fmt.Errorf("no AWS credentials, since their service does not answer (on a host without one, %s): %w",
		credentialsCure, err)
}

// status returns the HTTP status of the reply, which proxies send without a DynamoDB error; 0 without a
// reply.
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

// dateOf returns DynamoDB's date in a reply: in metadata if err is nil, else in the reply that err is about.
// It is zero if there is none, or if something other than DynamoDB may have made it.
func dateOf(o Outcome, metadata middleware.Metadata, err error) time.Time {
	if o == Unknown || o == NotSent || o == Failed && IsUnsent(err) {
		return time.Time{}
	}
	if err == nil {
		date, _ := awsmiddleware.GetServerTime(metadata)
		return date
	}
	replied, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || replied.Response == nil {
		return time.Time{}
	}
	date, _ := smithyhttp.ParseTime(replied.Response.Header.Get("Date"))
	return date
}

// CallError returns the error of a call on table as callers of this module get it:
//   - a *store.SetupError if somebody has to fix something,
//   - a *store.UnavailableError otherwise. If the client's retries are on, its error says how often it tried.
func CallError(table string, err error) error {
	o, _ := Classify(err)
	err = Explain(table, o, err)
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return err
	}
	return &store.UnavailableError{Resource: "table " + table, Err: err}
}

// Explain returns err as a *store.SetupError, which says what to do, if somebody has to fix something. If the
// service of the credentials does not answer, or another server answers than DynamoDB, the error says so.
// Other errors are returned as they are.
func Explain(table string, o Outcome, err error) error {
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return err
	}
	switch {
	case o == Failed:
		return setupError(table, err)
	case o == NotSent && noCredentials(err) && !errors.Is(err, context.Canceled):
		return explainLate(err)
	case o == Unknown:
		if other := otherServer(err); other != "" {
			return fmt.Errorf("%s: %s: %w", other, EndpointCure(err), err)
		}
	}
	return err
}

// EndpointCure returns what to do if another server answers a call than DynamoDB, or than DynamoDB Streams
// where err is of a call on it.
func EndpointCure(err error) string {
	variable := "AWS_ENDPOINT_URL_DYNAMODB"
	if op, ok := errors.AsType[*smithy.OperationError](err); ok && op.Service() == "DynamoDB Streams" {
		variable += "_STREAMS"
	}
	return "correct the endpoint (--endpoint, " + variable + "), or the proxy on the way"
}

// otherServer says that another server than DynamoDB answered, as at a wrong endpoint, and where: DynamoDB's
// own errors of such a status have a code, and it sends no pages. It returns "" for any other error.
func otherServer(err error) string {
	replied, ok := errors.AsType[*smithyhttp.ResponseError](err)
	if !ok || replied.Response == nil || replied.Response.Request == nil {
		return ""
	}
	api, coded := errors.AsType[smithy.APIError](err)
	code, isPage := status(err), strings.HasPrefix(replied.Response.Header.Get("Content-Type"), "text/html")
	if code < http.StatusMultipleChoices && !isPage || code >= http.StatusInternalServerError ||
		coded && api.ErrorCode() != "UnknownError" {
		return ""
	}
	u := replied.Response.Request.URL
	at := &url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(u.Path, "/")}
	return fmt.Sprintf("%s answers with status %d, and not as DynamoDB does", at, code)
}

func setupError(table string, err error) error {
	if IsUnsent(err) {
		setup := &store.SetupError{
			What: "the client could not send the request", Err: err, Do: "check its configuration",
		}
		if noCredentials(err) {
			setup.What = "no AWS credentials"
			setup.Do = credentialsCure
		}
		return setup
	}
	setup := &store.SetupError{
		What: "DynamoDB refused the call", Err: err, Do: "check the client's configuration",
	}
	if other := otherServer(err); other != "" {
		setup.What, setup.Do = other, EndpointCure(err)
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return setup
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		setup.What = fmt.Sprintf("table %s does not exist", table)
		setup.Do = createCure(table)
	case "AccessDeniedException":
		setup.What = "DynamoDB denies access to table " + table
		setup.Do = fmt.Sprintf("attach a policy that `sluice infra iam --table %s` prints: "+
			"acquire's to a service, admin's to an operator", table)
	case "InvalidSignatureException", "RequestTimeTooSkewed", "RequestExpired":
		setup.What = "DynamoDB does not accept the signature"
		setup.Do = "renew the credentials, and set this host's clock by NTP"
	case "UnrecognizedClientException", "ExpiredTokenException", "MissingAuthenticationTokenException",
		"IncompleteSignature", "InvalidClientTokenId":
		setup.What, setup.Do = "DynamoDB does not accept the credentials", "renew them"
	case "ValidationException":
		setup.What = "DynamoDB does not accept the request"
		setup.Do = "run `sluice table check`, and `sluice generate` if the generated code is older than the runtime"
	}
	return setup
}

// createCure returns what to do about a missing table, given its name or its ARN. CreateTable takes no ARN.
func createCure(table string) string {
	parts := strings.SplitN(table, ":", 6) // arn, a partition, dynamodb, a region, an account, table/NAME
	if len(parts) < 6 {
		return fmt.Sprintf("run `sluice table create --table %s`, or check region and endpoint", table)
	}
	return fmt.Sprintf("run `sluice table create --region %s --table %s` with credentials of account %s, or "+
		"check the ARN", parts[3], strings.TrimPrefix(parts[5], "table/"), parts[4])
}

// Malformed returns the error for a bucket's item that cannot be decoded.
func Malformed(entity, resource string, err error) error {
	return &store.SetupError{
		What: fmt.Sprintf("the bucket of %s on %s is malformed", store.Quote(entity), resource),
		Do:   "fix or delete the item: a missing bucket is a full one",
		Err:  err,
	}
}

// NewOp returns an id for a logical write: 72 random bits.
func NewOp() string {
	var id [16]byte
	binary.NativeEndian.PutUint64(id[:], rand.Uint64())
	binary.NativeEndian.PutUint64(id[8:], rand.Uint64())
	var text [12]byte
	base64.RawURLEncoding.Encode(text[:], id[:9])
	return string(text[:])
}
