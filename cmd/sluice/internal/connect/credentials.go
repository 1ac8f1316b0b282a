package connect

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/internal/tool/awsclient"
)

// bounded makes the calls bounded that get credentials: from STS, IAM Identity Center, a container's endpoint
// or an instance's metadata. It changes no client of HTTP, since the SDK gives each its own time-outs and
// certificates. The clients of DynamoDB and S3 have theirs bounded, and no such options: see withTimeouts.
func bounded() awsclient.Option {
	c := &boundedCredentials{servers: map[string]*program.Server{}}
	return config.WithAPIOptions([]func(*middleware.Stack) error{func(stack *middleware.Stack) error {
		return stack.Deserialize.Add(c, middleware.Before) // around an attempt, and the reading of its reply
	}})
}

// boundedCredentials is a middleware that bounds each attempt of a call that gets credentials.
type boundedCredentials struct {
	mu      sync.Mutex
	servers map[string]*program.Server // by scheme and host
}

// ID implements middleware.DeserializeMiddleware.
func (*boundedCredentials) ID() string { return "sluice: bound calls for credentials" }

// HandleDeserialize implements middleware.DeserializeMiddleware.
func (c *boundedCredentials) HandleDeserialize(
	ctx context.Context, in middleware.DeserializeInput, next middleware.DeserializeHandler,
) (middleware.DeserializeOutput, middleware.Metadata, error) {
	request, ok := in.Request.(*smithyhttp.Request)
	if !ok {
		return next.HandleDeserialize(ctx, in)
	}
	asked, _, done := c.at(request.URL.Scheme + "://" + request.URL.Host).Ask(ctx)
	out, metadata, err := next.HandleDeserialize(asked, in)
	silent := err != nil && errors.Is(context.Cause(asked), program.ErrSilent)
	if silent {
		err = &smithyhttp.RequestSendError{Err: program.ErrSilent} // another attempt may get an answer
	}
	done(!silent && ctx.Err() == nil)
	return out, metadata, err
}

// at returns the server of a scheme and a host.
func (c *boundedCredentials) at(place string) *program.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.servers[place] == nil {
		c.servers[place] = program.NewServer("credentials from "+place, func(why string) error {
			return fmt.Errorf("no credentials from %s, %s: check the network and AWS's configuration (AWS_PROFILE, "+
				"AWS_CONTAINER_CREDENTIALS_FULL_URI), or set AWS_ACCESS_KEY_ID", place, why)
		})
	}
	return c.servers[place]
}
