package migrate

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/migrating/perlimit"
	"github.com/sluice-go/sluice/runtime/store"
)

// account is what a limit of a bucket has to come to, in millitokens.
type account struct {
	item  bucket.Balance // of t0, before the migration
	ahead time.Duration  // that it was refilled before t0
	net   int64          // granted, less what was given back
}

// books are the accounts of all buckets, and what they are made of.
type books struct {
	mu          sync.Mutex
	accounts    map[string]*[2]account // by entity
	interrupted map[string]bool        // entities with a call in between
}

var names = [2]string{"rpm", "tpm"}

// kindOfEntity indexes specs' kinds.
func kindOfEntity(entity string) int {
	if strings.HasPrefix(entity, "user-") {
		return 2
	}
	return 1
}

// allowed is what the item was worth at t0, at most what its bucket holds: what the bucket may start with.
func (a *account) allowed(own bucket.Limit) int64 {
	tokens, ms := a.item.Tokens, a.ahead.Milliseconds()
	if ms >= 0 {
		tokens += ms * a.item.Refill / a.item.Period
	} else {
		tokens -= -ms*a.item.Refill/a.item.Period + 1
	}
	return min(tokens, a.item.Burst, own.Burst)
}

// call acquires, and settles or releases, and books what that comes to.
func (b *books) call(t *table, lim *limits.Limiter, who limits.GPT4Entity, rng *rand.Rand) {
	cost := limits.GPT4Cost{RPM: 1 + rng.Int64N(3), TPM: 1 + rng.Int64N(2000)}
	lease, err := lim.GPT4.Acquire(t.Context(), who, cost)
	if _, denied := errors.AsType[*store.DeniedError](err); denied {
		return
	}
	if err != nil {
		t.Error(err)
		return
	}
	switch rng.IntN(3) {
	case 0:
		lease.Release(t.Context())
		return
	case 1:
		cost = limits.GPT4Cost{RPM: 1 + rng.Int64N(4), TPM: 1 + rng.Int64N(2500)}
	}
	if err := lease.Settle(t.Context(), cost); err != nil {
		t.Error(err)
	}
	charged := []string{}
	switch who := who.(type) {
	case limits.User:
		charged = append(charged, "user-"+who.ID, "project-"+who.Project.ID)
	case limits.Project:
		charged = append(charged, "project-"+who.ID)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, entity := range charged {
		b.accounts[entity][0].net += cost.RPM * bucket.Milli
		b.accounts[entity][1].net += cost.TPM * bucket.Milli
	}
}

// write is by who writes per-limit items still: it counts if it came before the item was taken over.
func (b *books) write(t *table, entity string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	_, err := t.client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{
		TableName: &t.name,
		Key: codec.Item{"PK": codec.S("ENTITY#" + entity),
			"SK": codec.S("#BUCKET#gpt-4#rpm")},
		UpdateExpression:          aws.String("ADD tokens_milli :minus, total_consumed_milli :plus"),
		ConditionExpression:       aws.String("attribute_not_exists(migrated)"),
		ExpressionAttributeValues: codec.Item{":minus": codec.N(-1500), ":plus": codec.N(1500)},
	})
	if _, late := errors.AsType[*types.ConditionalCheckFailedException](err); late {
		return
	}
	if err != nil {
		t.Error(err)
	}
	a := &b.accounts[entity][0]
	a.item.Tokens -= 1500
	a.item.Consumed += 1500
}

// check holds what is stored against the books.
func (b *books) check(stored map[string]codec.Item) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for entity, accounts := range b.accounts {
		made := stored["ENTITY#"+entity+" #BUCKET#gpt-4"]
		if made == nil {
			add("%s has no bucket", entity)
			continue
		}
		for i := range accounts {
			a, name := &accounts[i], names[i]
			item := stored["ENTITY#"+entity+" #BUCKET#gpt-4#"+name]
			if item[perlimit.Migrated] == nil {
				add("%s: item %s is not marked", entity, name)
			}
			for _, hold := range []struct {
				of   codec.Item
				attr string
				want int64
			}{
				{item, perlimit.Consumed, a.item.Consumed},
				{made, "m_" + name, a.item.Consumed},
				{made, "b_" + name + "_tc", a.item.Consumed + a.net},
				{made, "b_" + name + "_tk", a.allowed(specs()[0].Kinds[kindOfEntity(entity)].Limits[i]) - a.net},
			} {
				if got, err := number(hold.of, hold.attr); err != nil || got != hold.want {
					add("%s: %s is %d (%v), want %d: %+d", entity, hold.attr, got, err, hold.want, got-hold.want)
				}
			}
		}
	}
	for at, item := range stored {
		if rf, err := number(item, "rf"); err == nil && rf != t0.UnixMilli() {
			add("%s: rf is %d", at, rf)
		}
		if strings.HasPrefix(at, "SYSTEM# #CHECKPOINT") {
			add("%s is left", at)
		}
	}
	return wrong
}
