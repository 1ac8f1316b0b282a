// Command gateway is an LLM gateway: it reserves tokens, streams the reply, and settles for what it sent.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/httplimit"

	"github.com/sluice-go/sluice/examples/llmgateway/limits"
)

// users has each user and the user's project, by API key.
var users = map[string]limits.User{
	"key-1": {ID: "alice", Project: limits.Project{ID: "app"}},
	"key-2": {ID: "bob", Project: limits.Project{ID: "app"}},
}

// gateway answers requests with the reply of a model.
type gateway struct{ chat limits.ChatAcquirer }

func (g gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	user, known := users[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	if !known {
		http.Error(w, "no such key", http.StatusUnauthorized) // before the limiter: it makes no bucket
		return
	}
	var call struct {
		Prompt    string `json:"prompt"`
		MaxTokens int64  `json:"max_tokens"` // bounds the reply
	}
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<20)).Decode(&call)
	if err != nil || call.MaxTokens < 1 || call.MaxTokens > 100_000 {
		http.Error(w, "send a prompt and max_tokens", http.StatusBadRequest)
		return
	}
	most := tokens(call.Prompt) + call.MaxTokens
	lease, err := g.chat.Acquire(r.Context(), user, limits.ChatCost{TPM: most}) // RPM: per_call 1
	if err != nil {
		if !httplimit.WriteError(w, r, err) { // it answers 429 with Retry-After, 400 or 503
			http.Error(w, "internal error", http.StatusInternalServerError)
		}
		return
	}
	defer lease.Release(r.Context()) // gives all back, unless the lease was settled
	sent := stream(r.Context(), w, call.MaxTokens)
	if sent == 0 {
		return
	}
	used := tokens(call.Prompt) + sent
	if err := lease.Settle(r.Context(), limits.ChatCost{TPM: used}); err != nil {
		log.Print(err)
	}
	log.Printf("%s reserved %d tokens and used %d; %d are left", user, most, used, lease.Remaining().TPM)
}

// stream sends the model's reply word by word, and returns how many words it sent.
func stream(ctx context.Context, w http.ResponseWriter, most int64) (sent int64) {
	reply := strings.Fields("A call reserves the most that it may use and settles for what it used.")
	for _, word := range reply[:min(int64(len(reply)), most)] {
		if _, err := fmt.Fprint(w, word, " "); err != nil || ctx.Err() != nil {
			break // the client hung up
		}
		_ = http.NewResponseController(w).Flush()
		sent++
	}
	return sent
}

// tokens estimates the tokens of a text. Take the tokenizer of your model.
func tokens(text string) int64 { return int64(len(strings.Fields(text))) }

func main() {
	ctx := context.Background()
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		log.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(dynamodb.NewFromConfig(cfg), "rate_limits")) // no I/O
	if err == nil {
		err = lim.Check(ctx) // the table is there and right, and so is the clock
	}
	if err != nil {
		log.Fatal(err)
	}
	log.Fatal(http.ListenAndServe("localhost:8080", gateway{lim.Chat}))
}
