package wire

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/store"
)

// CallError is what a failed call about a table means to who asked for it. How often it was tried is the client's affair,
// whose retries are on, and is in err.
func CallError(table string, err error) error {
	o, _ := Classify(err)
	err = Explain(table, o, err)
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return err
	}
	return &store.UnavailableError{Resource: "table " + table, Err: err}
}

// Explain makes an error that somebody has to mend a *store.SetupError that says what to do, if it is none yet.
func Explain(table string, o Outcome, err error) error {
	if _, ok := errors.AsType[*store.SetupError](err); ok {
		return err
	}
	if o == Failed || IsUnsent(err) && noCredentials(err) && !errors.Is(err, context.Canceled) {
		return setupError(table, err)
	}
	return err
}

func setupError(table string, err error) error {
	if IsUnsent(err) {
		setup := &store.SetupError{What: "the client could not send the request", Err: err, Do: "check its configuration"}
		if noCredentials(err) {
			setup.What = "no AWS credentials"
			setup.Do = "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or run with a role"
		}
		return setup
	}
	setup := &store.SetupError{What: "DynamoDB refused the call", Err: err, Do: "check the client's configuration"}
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

// Malformed is the error for a bucket's item that cannot be one.
func Malformed(entity, resource string, err error) error {
	return &store.SetupError{
		What: fmt.Sprintf("the bucket of %s on %s is malformed", entity, resource),
		Do:   "mend or delete the item: a missing bucket is a full one",
		Err:  err,
	}
}
