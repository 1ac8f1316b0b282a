package s3store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// Error is a failed call of S3.
type Error struct {
	Object string // s3://bucket/key
	Op     string // GetObject or PutObject
	Do     string // what to do, or ""
	Err    error  // that of the client
}

// Error names the object and the operation, the cause, and what to do.
func (e *Error) Error() string {
	s := fmt.Sprintf("%s: %s: %v", e.Object, e.Op, e.Err)
	if e.Do != "" {
		s += "; " + e.Do
	}
	return s
}

// Unwrap returns the client's error.
func (e *Error) Unwrap() error { return e.Err }

// explain adds to the error of an operation the object and what to do.
func (s *Store) explain(operation, key string, err error) error {
	if err == nil {
		return nil
	}
	failed := &Error{Object: "s3://" + s.bucket + "/" + key, Op: operation, Err: err}
	if errors.Is(err, errTooLarge) {
		return &TooLargeError{failed.Object, s.most}
	}
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return failed
	}
	switch answer.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%s: %w", failed.Object, fs.ErrNotExist)
	case "NoSuchBucket":
		failed.Do = "create the bucket, in one of the regions, or name the one that all of them share"
	case "AccessDenied", "AllAccessDisabled", "Forbidden":
		failed.Do = "allow s3:" + operation + " on this object for this process, here and in the bucket's policy"
		if operation == "GetObject" {
			failed.Do += ", and s3:ListBucket on the bucket, without which S3 denies what is not there yet"
		}
		failed.Do += "; `sluice infra iam --role region-sync` prints a policy"
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
		failed.Do = "check the credentials"
	case "RequestTimeTooSkewed":
		failed.Do = "set this machine's clock: regional quotas depend on it too"
	}
	return failed
}

// bucketRegion returns the region of a bucket if S3's reply has it, else "".
func bucketRegion(err error) string {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil {
		return answer.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}
