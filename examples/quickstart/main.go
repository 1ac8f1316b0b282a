// Command quickstart is a service with a limit for each user and for each project.
//
//	go run ./examples/quickstart         on a DynamoDB in the process
//	go run ./examples/quickstart -aws    on that of the AWS configuration
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net/http"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/httplimit"
	"github.com/sluice-go/sluice/runtime/memdynamo"

	"github.com/sluice-go/sluice/examples/quickstart/limits"
)

// chat answers 429 with Retry-After if a limit of the user or of the user's project denies the call.
func chat(gpt4 limits.GPT4Acquirer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		// A real service takes the id from what it has authenticated.
		user := limits.User{ID: r.FormValue("user"), Project: limits.Project{ID: "1"}}
		lease, err := gpt4.Acquire(r.Context(), user, limits.GPT4Cost{TPM: 9_000}) // RPM: per_call 1
		if err != nil {
			if !httplimit.WriteError(w, r, err) {
				http.Error(w, "failed", http.StatusInternalServerError)
			}
			return
		}
		defer lease.Release(r.Context()) // does nothing once settled
		used := reply(w)
		if err := lease.Settle(r.Context(), limits.GPT4Cost{TPM: used}); err != nil {
			log.Print(err) // the estimate may stay charged
		}
	}
}

// reply answers, and returns how many tokens that took.
func reply(w http.ResponseWriter) int64 {
	_, _ = fmt.Fprintln(w, "an answer")
	return 7_000
}

func main() {
	onAWS := flag.Bool("aws", false, "use the DynamoDB of the AWS configuration")
	flag.Parse()
	ctx := context.Background()
	client := memdynamo.New().Client()
	if *onAWS {
		cfg, err := config.LoadDefaultConfig(ctx)
		if err != nil {
			log.Fatal(err)
		}
		client = dynamodb.NewFromConfig(cfg)
	}
	if _, err := operator.CreateTable(ctx, client, "rate_limits"); err != nil { // or find it there
		log.Fatal(err)
	}
	lim, err := limits.New(dynamo.New(client, "rate_limits")) // no I/O
	if err == nil {
		err = lim.Check(ctx) // the table is there and right, and so is the clock
	}
	if err != nil {
		log.Fatal(err)
	}
	http.Handle("POST /chat", chat(lim.GPT4))
	log.Print(`try: curl -i -d user=123 localhost:8080/chat`)
	log.Fatal(http.ListenAndServe("localhost:8080", nil))
}
