package dynamo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"

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
	unapplied         // throttled, or never sent: trying again is safe
	unknown           // it may have been applied: no reply, or a server's failure
	fatal             // not applied, and trying again will not help
)

// String returns the outcome as observers see it.
func (o outcome) String() string {
	return [...]string{"applied", "refused", "unapplied", "unknown", "failed"}[o]
}

// classify sorts an error of a write. A refusal comes with the item that the condition failed on, nil for none.
func classify(err error) (outcome, codec.Item) {
	if failed, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return refused, failed.Item
	}
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		switch api.ErrorCode() {
		case "ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException",
			"TransactionConflictException", "ReplicatedWriteConflictException":
			return unapplied, nil
		}
		if api.ErrorFault() == smithy.FaultServer || serverStatus(err) {
			return unknown, nil
		}
		return fatal, nil
	}
	return classifyTransport(err), nil
}

// serverStatus reports an HTTP status of 5xx, which proxies send without a DynamoDB error.
func serverStatus(err error) bool {
	r, ok := errors.AsType[*smithyhttp.ResponseError](err)
	return ok && r.HTTPStatusCode() >= 500
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

// explain makes a fatal error a *runtime.SetupError that says what to do.
func (s *session) explain(o outcome, err error) error {
	if o != fatal {
		return err
	}
	return s.setupError(err)
}

func (s *session) setupError(err error) error {
	setup := &runtime.SetupError{What: "DynamoDB refused the call", Err: err, Do: "check the client's configuration"}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return setup
	}
	switch api.ErrorCode() {
	case "ResourceNotFoundException":
		setup.What = fmt.Sprintf("table %s does not exist", s.table)
		setup.Do = fmt.Sprintf("run `sluice table create --table %s`, or check region and endpoint", s.table)
	case "AccessDeniedException":
		setup.What = "DynamoDB denies access to table " + s.table
		setup.Do = "grant dynamodb:GetItem, PutItem, UpdateItem, DescribeTable and DescribeTimeToLive on it"
	case "UnrecognizedClientException", "InvalidSignatureException", "ExpiredTokenException", "MissingAuthenticationTokenException",
		"IncompleteSignature", "InvalidClientTokenId":
		setup.What, setup.Do = "DynamoDB does not accept the credentials", "renew them"
	case "ValidationException":
		setup.What = "DynamoDB does not accept the request"
		setup.Do = "run `sluice table check`, and `sluice generate` if the generated code is older than the runtime"
	}
	return setup
}

// readError is what a failed read means to a caller.
func (s *session) readError(ctx context.Context, b *slot, err error) error {
	if errors.Is(ctx.Err(), context.Canceled) {
		return fmt.Errorf("sluice: %s for %s: %w", b.spec.Resource, b.bucket.Entity, ctx.Err())
	}
	if o, _ := classify(err); o == fatal {
		return s.setupError(err)
	}
	return &runtime.UnavailableError{Resource: b.spec.Resource, Attempts: 1, Err: err}
}
