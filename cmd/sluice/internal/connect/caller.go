package connect

import (
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/sts"
)

// callerTime bounds the question who the caller is: a change does not wait long for the answer.
const callerTime = 3 * time.Second

// Caller returns the ARN as which client signs its calls, by STS. It returns "" if STS does not answer, and
// for a client of another endpoint than AWS's.
func Caller(ctx context.Context, client *dynamodb.Client) string {
	o := client.Options()
	if o.BaseEndpoint != nil || o.Credentials == nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, callerTime)
	defer cancel()
	out, err := sts.New(sts.Options{Region: o.Region, Credentials: o.Credentials, HTTPClient: o.HTTPClient}).
		GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{})
	if err != nil {
		return ""
	}
	return aws.ToString(out.Arn)
}
