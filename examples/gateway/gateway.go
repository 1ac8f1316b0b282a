package main

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/httplimit"
)

// gateway is one process's: a model behind limits, spoken to as OpenAI is.
type gateway struct {
	gpt4       *limits.GPT4Resource
	embeddings limits.EmbeddingsAcquirer
	users      map[string]limits.User // by API key
	model      model
	log        *slog.Logger
}

// flexWait is how long requests of service tier flex, which would rather wait than be denied, wait at most.
const flexWait = 5 * time.Second

// handler returns what the gateway serves, completions by complete. Limits stand behind what says who is
// charged and how much, and before what costs.
func (g *gateway) handler(complete http.HandlerFunc) http.Handler {
	headers := httplimit.OpenAIHeaders(limits.GPT4RPM, limits.GPT4TPM)
	paid := httplimit.Status(limits.GPT4Month, http.StatusPaymentRequired) // the org's budget is exhausted
	standard := httplimit.Middleware(g.gpt4, askChat, headers, paid)(complete)
	waiting := patient{g.gpt4.With(runtime.MaxWait(flexWait))}
	flex := httplimit.Middleware(waiting, askChat, headers, paid)(complete)
	embed := httplimit.Middleware(g.embeddings, askEmbeddings,
		httplimit.OpenAIHeaders(limits.EmbeddingsRPS, nil))

	mux := http.NewServeMux()
	mux.Handle("POST /v1/chat/completions",
		g.authenticated(decoded(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if chatOf(r).ServiceTier == "flex" {
				flex.ServeHTTP(w, r)
				return
			}
			standard.ServeHTTP(w, r)
		}))))
	mux.Handle("POST /v1/embeddings", g.authenticated(embed(http.HandlerFunc(vectors))))
	return mux
}

// askChat reserves the estimate, of the user and of the project, its price of the org, and a slot of the
// user.
func askChat(r *http.Request) (limits.GPT4Entity, limits.GPT4Cost, error) {
	return userOf(r), chatOf(r).estimate().Cost(), nil // Parallel, RPM: per_call 1
}

// askEmbeddings charges a batch of texts to the project. Its cost is known beforehand: there is nothing to
// settle.
func askEmbeddings(r *http.Request) (limits.EmbeddingsEntity, limits.EmbeddingsCost, error) {
	return userOf(r).Project, limits.EmbeddingsCost{}, nil // RPS: per_call 1
}

// complete streams the model's reply, and settles for the prompt and for the tokens sent. It settles also if
// the model breaks off or the client hangs up, even before the first token, since the model worked for it. If
// the model fails before the first token, the call costs nothing. Its slot comes back in any case. The
// context ends if the slot is lost, and so does the reply.
func (g *gateway) complete(w http.ResponseWriter, r *http.Request) {
	ctx, chat := r.Context(), chatOf(r)
	lease := httplimit.Lease[limits.GPT4Cost](ctx)
	defer lease.Release(ctx) // does nothing once settled; works though the client has gone

	reply := newStream(w, chat.Model)
	var failure error
	for text, err := range g.model(ctx, chat) {
		if failure = err; err != nil || !reply.send(text) {
			break
		}
	}
	if failure != nil && !reply.begun && ctx.Err() == nil {
		fail(w, http.StatusBadGateway, "The model failed.")
		return
	}
	used := limits.GPT4Usage{Input: tokens(chat.prompt()), Output: reply.sent}
	if ctx.Err() == nil { // first, so that nobody waits for the settle
		reply.end(used, failure)
	}
	if err := lease.Settle(ctx, used.Cost()); err != nil {
		g.log.ErrorContext(ctx, "settle failed", "user", userOf(r).ID, "used", used.Input+used.Output,
			"error", err)
	}
}

// patient is an acquirer that waits for tokens.
type patient struct{ *limits.GPT4Resource }

// Acquire is Wait.
func (p patient) Acquire(
	ctx context.Context, entity limits.GPT4Entity, cost limits.GPT4Cost, opts ...runtime.CallOption,
) (*limits.GPT4Lease, error) {
	return p.Wait(ctx, entity, cost, opts...)
}
