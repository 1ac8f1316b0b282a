package s3store

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// explain adds to the error of an operation the object and what to do.
func (s *Store) explain(operation, key string, err error) error {
	if err == nil {
		return nil
	}
	object := "s3://" + s.bucket + "/" + key
	if errors.Is(err, errTooLarge) {
		return &TooLargeError{object, s.most}
	}
	fail := func(do string) error { return fmt.Errorf("%s: %s: %w; %s", object, operation, err, do) }
	answer, ok := errors.AsType[smithy.APIError](err)
	if !ok {
		return fmt.Errorf("%s: %s: %w", object, operation, err)
	}
	switch answer.ErrorCode() {
	case "NoSuchKey", "NotFound":
		return fmt.Errorf("%s: %w", object, fs.ErrNotExist)
	case "NoSuchBucket":
		return fail("create the bucket, in one of the regions, or name the one that all of them share")
	case "AccessDenied", "AllAccessDisabled", "Forbidden":
		do := "allow s3:" + operation + " on this object for this process, here and in the bucket's policy"
		if operation == "GetObject" {
			do += ", and s3:ListBucket on the bucket, without which S3 denies what is not there yet"
		}
		return fail(do + "; `sluice infra iam --role region-sync` prints a policy")
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken", "InvalidToken":
		return fail("check the credentials")
	case "RequestTimeTooSkewed":
		return fail("set this machine's clock: regional quotas depend on it too")
	}
	return fmt.Errorf("%s: %s: %w", object, operation, err)
}

// bucketRegion returns the region of a bucket if S3's reply has it, else "".
func bucketRegion(err error) string {
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.Response != nil {
		return answer.Response.Header.Get("X-Amz-Bucket-Region")
	}
	return ""
}
