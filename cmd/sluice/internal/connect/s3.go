package connect

import (
	"context"
	"errors"
	"fmt"
	"net"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

// S3 returns a client of S3 whose attempts are bounded. A non-empty region beats the environment's.
func S3(ctx context.Context, region string) (*s3.Client, error) {
	client, err := awsclient.S3(ctx, region, bounded())
	if err != nil {
		return nil, err
	}
	o := client.Options()
	place := "S3 in " + o.Region
	if o.BaseEndpoint != nil {
		place = "S3 at " + secrets.URL(*o.BaseEndpoint)
	}
	server := program.NewServer(place, func(why string) error {
		return fmt.Errorf("%s does not answer, %s: %s", place, why, s3Cure)
	})
	return s3.New(o, func(o *s3.Options) {
		o.HTTPClient, o.APIOptions = &boundedClient{o.HTTPClient, server}, nil
	}), nil
}

// s3Cure is what to do about an S3 that does not answer.
const s3Cure = "check the network, the region and AWS_ENDPOINT_URL_S3"

// ExplainS3 replaces the long error of a failed connection to S3 by one that says what to do. It returns
// other errors unchanged.
func ExplainS3(err error) error {
	failed, ok := errors.AsType[*s3store.Error](err)
	if !ok {
		return err
	}
	why, unanswered := unanswered(failed.Err)
	if !unanswered {
		return err
	}
	return fmt.Errorf("%s: S3 does not answer%s: %s", failed.Object, why, s3Cure)
}

// unanswered reports whether err is that of a call without an answer, except for calls that get credentials,
// and says why.
func unanswered(err error) (why string, ok bool) {
	dial, dialled := errors.AsType[*net.OpError](err)
	switch {
	case err == nil || errors.Is(err, context.Canceled) || ofCredentials(err):
		return "", false
	case errors.Is(err, program.ErrSilent):
		return ", " + program.ErrSilent.Error(), true
	case !dialled || dial.Op != "dial":
		return "", false
	}
	return Reason(dial), true
}
