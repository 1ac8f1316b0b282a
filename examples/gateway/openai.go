package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// chat is the body of a request for a completion, as far as the gateway knows it.
type chat struct {
	Model       string    `json:"model"`
	Messages    []message `json:"messages"`
	MaxTokens   int64     `json:"max_completion_tokens,omitempty"`
	Stream      bool      `json:"stream"`
	ServiceTier string    `json:"service_tier,omitempty"`
}

type message struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// most is how many tokens a reply may have, and has at most where the client does not say.
const most = 300

// prompt is all that the model is to read.
func (c *chat) prompt() string {
	var all []string
	for _, m := range c.Messages {
		all = append(all, m.Content)
	}
	return strings.Join(all, "\n")
}

// estimate is the tokens that a call may take: four characters are about one token, and the reply may be as
// long as it is allowed to be. It may turn out too low.
func (c *chat) estimate() limits.GPT4Usage {
	return limits.GPT4Usage{Input: int64(len(c.prompt())) / 4, Output: c.MaxTokens}
}

// tokens counts the tokens of a text exactly: in this example they are its words.
func tokens(text string) int64 { return int64(len(strings.Fields(text))) }

// Keys of the values that a middleware puts into a request's context for the handlers behind it.
type (
	userKey struct{}
	chatKey struct{}
)

func userOf(r *http.Request) limits.User {
	user, _ := r.Context().Value(userKey{}).(limits.User)
	return user
}

func chatOf(r *http.Request) *chat {
	c, _ := r.Context().Value(chatKey{}).(*chat)
	return c
}

// apiKey is what a request says of who sends it.
func apiKey(r *http.Request) string {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	return key
}

// authenticated lets through whose API key is known. It stands before the limits: who made up names could
// otherwise have as many buckets as names.
func (g *gateway) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, ok := g.users[apiKey(r)]
		if !ok {
			fail(w, http.StatusUnauthorized, "The API key is not known.")
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), userKey{}, user)))
	})
}

// longest is how long a request may be, upload how long it may take: who sends it byte by byte holds nobody
// up.
const (
	longest = 1 << 20
	upload  = 10 * time.Second
)

// decoded reads the request, which says what it may cost. It reads to the end of the body: a server notices
// that its client has gone only from there on.
func decoded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &chat{MaxTokens: most}
		body, err := receive(w, r)
		if err == nil {
			err = json.Unmarshal(body, c)
		}
		switch {
		case err != nil:
			fail(w, http.StatusBadRequest, "The body cannot be read: "+err.Error()+".")
		case c.Model != limits.GPT4:
			fail(w, http.StatusNotFound, fmt.Sprintf("There is no model %q: ask for %s.", c.Model, limits.GPT4))
		case !c.Stream:
			fail(w, http.StatusBadRequest, "This gateway streams: set stream to true.")
		case c.MaxTokens < 1 || c.MaxTokens > most:
			fail(w, http.StatusBadRequest, fmt.Sprintf("max_completion_tokens is %d: it can be 1 to %d.", c.MaxTokens,
				most))
		default:
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), chatKey{}, c)))
		}
	})
}

// receive reads a request's body. The server's ReadTimeout would do for that, but runs on while the reply
// streams, and ends it.
func receive(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	control := http.NewResponseController(w)
	if err := control.SetReadDeadline(time.Now().Add(upload)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, longest))
	if err != nil {
		return nil, err // the deadline stands: the server does not wait for the rest either
	}
	return body, control.SetReadDeadline(time.Time{})
}

// errorBody is what is said of an error, in an answer of its own or in a stream.
type errorBody struct {
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
}

// fail answers with an error that is none of the limits'.
func fail(w http.ResponseWriter, status int, text string) {
	var body errorBody
	body.Error.Message = text
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

// vectors answers a request for embeddings, whatever the texts.
func vectors(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.6,0.8]}]}`+
		"\n")
}
