package memdynamo

import (
	"context"
	"encoding/json"
	"errors"
	"hash/crc32"
	"io"
	"net/http"
	"strconv"
	"strings"
	"syscall"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/engine"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// The two services, as X-Amz-Target names them.
const (
	tablesService  = "DynamoDB_20120810"
	streamsService = "DynamoDBStreams_20120810"
)

// Content types of replies.
const (
	amzJSON   = "application/x-amz-json-1.0"
	plainJSON = "application/json"
)

// maxRequest is the most bytes that a request's body may have.
const maxRequest = 16 << 20

// ServeHTTP serves the protocol. Faults that break a connection do.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := readBody(r)
	if err != nil {
		panic(http.ErrAbortHandler) // the client has gone
	}
	reply, err := e.exchange(r.Context(), r, body)
	if err != nil {
		panic(http.ErrAbortHandler) // net/http's way of breaking a connection
	}
	reply.head(w.Header(), e.clock)
	w.WriteHeader(reply.status)
	_, _ = w.Write(reply.body) // who does not read it has gone
}

// readBody returns the body, and one byte more than maxRequest at most.
func readBody(r *http.Request) ([]byte, error) {
	if r.Body == nil {
		return nil, nil
	}
	if n := r.ContentLength; n > 0 && n <= maxRequest {
		body := make([]byte, n)
		_, err := io.ReadFull(r.Body, body)
		return body, err
	}
	return io.ReadAll(io.LimitReader(r.Body, maxRequest+1))
}

// reply is an answer.
type reply struct {
	status      int
	contentType string
	id          string
	body        []byte
}

// head sets the reply's header.
func (r *reply) head(h http.Header, clock Clock) {
	h["Date"] = []string{clock.Now().UTC().Format(http.TimeFormat)}
	h["Content-Length"] = []string{strconv.Itoa(len(r.body))}
	h["X-Amzn-Requestid"] = []string{r.id}
	h["X-Amz-Crc32"] = []string{strconv.FormatUint(uint64(crc32.ChecksumIEEE(r.body)), 10)}
	if r.contentType != "" {
		h["Content-Type"] = []string{r.contentType}
	}
}

// exchange answers a request, whose body was read. An error is ctx's, or that of a connection which broke.
func (e *Engine) exchange(ctx context.Context, r *http.Request, body []byte) (*reply, error) {
	if e.faults.down.Load() {
		return nil, broken("dial", syscall.ECONNREFUSED)
	}
	dice := cast(e.faults.seed, e.faults.number.Add(1))
	answer := &reply{status: http.StatusOK, id: dice.id()}
	switch {
	case len(body) > maxRequest:
		answer.status = http.StatusRequestEntityTooLarge
		return answer, nil
	case r.Method == http.MethodGet, r.Method == "": // as clients may write it
		answer.body = []byte("healthy: dynamodb." + engine.Region + ".amazonaws.com ") // the space is AWS's
		return answer, nil
	case r.Method != http.MethodPost:
		answer.status, answer.body = http.StatusNotFound, []byte("<UnknownOperationException/>\n")
		return answer, nil
	}
	answer.contentType = contentType(r.Header.Get("Content-Type"))
	output, err := e.call(ctx, r, body, dice)
	if refusal, ok := errors.AsType[*exception.Error](err); ok {
		answer.status, answer.body = refusal.Status(), exceptionBody(refusal)
		return answer, nil
	}
	answer.body = output
	return answer, err
}

// contentType returns what answers a request of that type. AWS wants one of the two; here any will do, so
// that a plain curl works.
func contentType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	if strings.TrimSpace(kind) == plainJSON {
		return plainJSON
	}
	return amzJSON
}

// call performs the operation that the header names.
func (e *Engine) call(ctx context.Context, r *http.Request, body []byte, dice *dice) ([]byte, error) {
	operation, err := target(r.Header.Get("X-Amz-Target"))
	if err == nil {
		err = authenticated(r)
	}
	if err != nil {
		// A body that is not JSON is reported before a fault of the header. With a good header the operation finds
		// that out itself.
		if len(body) > 0 && !json.Valid(body) {
			err = exception.New(exception.Serialization, "")
		}
		return nil, err
	}
	return e.perform(ctx, operation, body, dice)
}

// target returns the operation of an X-Amz-Target.
func target(header string) (operation string, err error) {
	service, operation, _ := strings.Cut(header, ".")
	known, streams := engine.Known(operation)
	switch {
	case known && service == tablesService && !streams, known && service == streamsService && streams:
		return operation, nil
	case !known && operation != "" && (service == tablesService || service == streamsService):
		// AWS has no message here, but it serves more operations, and a test may call one of those.
		return "", exception.New(exception.UnknownOperation, "memdynamo does not serve %s", operation)
	}
	return "", exception.New(exception.UnknownOperation, "")
}

// authenticated refuses a request without a signature. Any will do: nobody looks whether it is right.
func authenticated(r *http.Request) error {
	header := r.Header.Get("Authorization")
	if strings.HasPrefix(header, "AWS4-") || strings.Contains(r.URL.RawQuery, "X-Amz-Algorithm=") {
		// signed in the URL
		return nil
	}
	return exception.New(exception.MissingAuthentication, "Request is missing Authentication Token")
}

// exceptionBody returns the body that carries an exception.
func exceptionBody(e *exception.Error) []byte {
	b := append([]byte(nil), `{"__type":"`...)
	b = append(b, namespace(e.Code)...)
	b = append(b, '#')
	b = append(b, e.Code...)
	b = append(b, '"')
	if e.Message != "" {
		b = append(b, `,"`...)
		b = append(b, messageMember(e.Code)...)
		b = append(b, `":`...)
		b = value.AppendString(b, e.Message)
	}
	if e.Fields != nil {
		b = e.Fields.AppendFields(b)
	}
	return append(b, '}')
}

// namespace returns what AWS puts before a code: the name of the layer that refuses.
func namespace(code string) string {
	switch code {
	case exception.Validation:
		return "com.amazon.coral.validate"
	case exception.MissingAuthentication, exception.Serialization, exception.UnknownOperation:
		return "com.amazon.coral.service"
	}
	return "com.amazonaws.dynamodb.v20120810"
}

// messageMember returns how AWS spells the member with the message, which is not always the same. Clients
// take either.
func messageMember(code string) string {
	switch code {
	case exception.Serialization, exception.TransactionCanceled:
		return "Message"
	}
	return "message"
}
