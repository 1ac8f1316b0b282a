package grpclimit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"

	"google.golang.org/grpc"

	limits "github.com/sluice-go/sluice/generated"
)

// logged is a resource with a log.
type logged struct {
	limits.GPT4Acquirer

	log *slog.Logger
}

// Logger implements what middlewares ask a resource for.
func (l logged) Logger() *slog.Logger { return l.log }

// TestAskIsLogged: the log has the error of ask that the client does not get.
func TestAskIsLogged(t *testing.T) {
	var log bytes.Buffer
	fake := logged{newFake(), slog.New(slog.NewJSONHandler(&log, nil))}
	interceptors := failingAsk(fake, errors.New("secret"))
	client := serve(t, &service{
		unary: func(context.Context) error { t.Error("the handler was called"); return nil },
	}, []grpc.ServerOption{grpc.UnaryInterceptor(interceptors.unary)})
	if _, err := client.UnaryCall(t.Context(), request(700)); err == nil {
		t.Error("served")
	}
	line := map[string]string{}
	if err := json.Unmarshal(log.Bytes(), &line); err != nil || line["level"] != "ERROR" ||
		line["error"] != "secret" || line["method"] != "/grpc.testing.TestService/UnaryCall" {
		t.Errorf("logged %s (%v)", &log, err)
	}
}
