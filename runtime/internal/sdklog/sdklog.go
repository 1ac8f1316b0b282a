// Package sdklog keeps one wrong warning of the AWS SDK out of a service's log. The SDK's client of DynamoDB
// compares each reply with its header X-Amz-Crc32, and takes a header that is not there for 0. DynamoDB Local
// has none on errors, so each refused condition is logged:
//
//	WARN failed to close HTTP response body, this may affect connection reuse: response did not match expected
//	checksum, 0, 837963753
//
// Nothing is wrong with the reply, nor with the connection. A checksum that is there and does not match is
// logged as before.
package sdklog

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go/logging"
)

// Quiet is an option of a client, or of a call, whose logger does not get that warning.
func Quiet(o *dynamodb.Options) {
	switch o.Logger.(type) {
	case nil, logging.Nop, quiet:
	default:
		o.Logger = quiet{o.Logger}
	}
}

// quiet is a logger that does not get the warning.
type quiet struct{ logging.Logger }

// missing is how the SDK's error begins if there is no checksum. It is that of a checksum of 0 too, which
// only an empty reply has, and one in four billions.
const missing = "response did not match expected checksum, 0, "

// Logf implements logging.Logger.
func (q quiet) Logf(class logging.Classification, format string, args ...any) {
	if class == logging.Warn && len(args) == 1 {
		if err, ok := args[0].(error); ok && strings.HasPrefix(err.Error(), missing) {
			return
		}
	}
	q.Logger.Logf(class, format, args...)
}

// WithContext implements logging.ContextLogger.
func (q quiet) WithContext(ctx context.Context) logging.Logger {
	return quiet{logging.WithContext(ctx, q.Logger)}
}
