package memdynamo

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// HTTPClient returns what carries requests to the engine in place of sockets, for clients that are made
// elsewhere: it goes into aws.Config or a client's Options. Its errors are those of an *http.Client.
func (e *Engine) HTTPClient() aws.HTTPClient { return transport{e} }

type transport struct{ engine *Engine }

// Do implements aws.HTTPClient.
func (t transport) Do(r *http.Request) (*http.Response, error) {
	answer, err := t.send(r.Context(), r)
	if err != nil {
		return nil, &url.Error{Op: verb(r.Method), URL: r.URL.Redacted(), Err: err}
	}
	header := make(http.Header, 5)
	answer.head(header, t.engine.clock)
	return &http.Response{
		Status:        strconv.Itoa(answer.status) + " " + http.StatusText(answer.status),
		StatusCode:    answer.status,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		Body:          io.NopCloser(bytes.NewReader(answer.body)),
		ContentLength: int64(len(answer.body)),
		Request:       r,
	}, nil
}

// send takes a request in, unless its context is over.
func (t transport) send(ctx context.Context, r *http.Request) (*reply, error) {
	if r.Body != nil {
		defer func() { _ = r.Body.Close() }() // as RoundTrippers must, whatever comes of it
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return t.engine.exchange(ctx, r, body)
}

// verb is what an *http.Client's errors call a method: Post.
func verb(method string) string {
	if method == "" {
		method = http.MethodGet
	}
	return method[:1] + strings.ToLower(method[1:])
}
