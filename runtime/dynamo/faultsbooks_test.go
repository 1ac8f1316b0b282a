package dynamo

import (
	"context"
	"errors"
	"fmt"
	"github.com/sluice-go/sluice/runtime/bucket"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/internal/item"

	streamtypes "github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/scheduler"
	"github.com/sluice-go/sluice/runtime/store"
)

// The store's guarantees while requests and replies are lost, requests arrive twice or late, are throttled,
// meet transactions or fail within DynamoDB, and callers leave. A deed is one acquire, settle or release, a
// change what it has written to a bucket's consumption (tc), net of what it gave back.
//
//	always    an admitted acquire has charged its cost at least; any other has given back at most what it
//	          charged. A settle or release that gives back was applied once if it succeeded, and at most
//	          once if it failed: then the lease stands as charged or as settled, as Settle says. A settle
//	          that charges more did, if it succeeded. So no bucket admits more than was charged.
//	in order  if each copy of a write arrives before the next write of its bucket, all of these are exact:
//	          an acquire has charged its cost once, or nothing if it was not admitted. The exception is a
//	          give-back whose own reply was lost, since it is not sent again.
//
// A late copy of a charge charges twice: it errs to the safe side, and the caller is told nothing of it. A
// late copy of a give-back would mint tokens, and none is made. The store sends a give-back again only if the
// one before is known not to be applied. A client that gave up has sent one request, however late that
// arrives. A network that copies a give-back is not covered: one copy may arrive after the bucket's next
// write, or be throttled while the other is applied. TCP does neither, and net/http sends no POST again that
// may have gone out; a proxy that repeats POSTs would. TestCopiesOfAGiveBack and TestCopyOfARefusedGiveBack
// have both.

// deed is one call, as it was reported to its caller and as it was written.
type deed struct {
	what   string               // acquire, settle or release
	change map[item.Key][]int64 // of tc, in millitokens, if it is done
	failed error

	mu         sync.Mutex
	unreturned bool                 // a write that gives back what was charged was not answered
	net        map[item.Key][]int64 // by the table's stream: the change that there was
}

type deedKey struct{}

// within returns ctx for the calls of d.
func (d *deed) within(ctx context.Context) context.Context {
	return context.WithValue(ctx, deedKey{}, d)
}

// gives reports that a change gives something back.
func gives(change []int64) bool { return slices.ContainsFunc(change, negative) }

// wrong says what is wrong with what was written to a bucket, in the light of what the caller was told.
func (d *deed) wrong(at item.Key, inOrder bool) string {
	reported, net := d.change[at], d.net[at]
	if reported == nil {
		reported = make([]int64, len(net))
	}
	if net == nil {
		net = make([]int64, len(reported))
	}
	nothing := make([]int64, len(reported))
	short := func(least []int64) bool {
		for i := range net {
			if net[i] < least[i] {
				return true
			}
		}
		return false
	}
	var wrong bool
	switch {
	case d.what == "acquire" && d.failed != nil:
		wrong = short(nothing) || inOrder && !d.unreturned && !slices.Equal(net, nothing)
	case gives(reported):
		wrong = !slices.Equal(net, reported) && (d.failed == nil || !slices.Equal(net, nothing))
	case d.failed != nil:
		wrong = short(nothing) || inOrder && !slices.Equal(net, reported) && !slices.Equal(net, nothing)
	default:
		wrong = short(reported) || inOrder && !slices.Equal(net, reported)
	}
	if !wrong {
		return ""
	}
	return fmt.Sprintf("%s of %v at %s, told %v, changed %v", d.what, reported, at.PK+at.SK, d.failed, net)
}

// bounds returns the least and the most that the bucket at a key was changed by, in limit i, as the caller
// was told. They differ where the API says that it does not know.
func (d *deed) bounds(at item.Key, i int) (least, most int64) {
	reported := d.change[at]
	switch {
	case reported == nil:
		return 0, 0
	case d.failed == nil:
		return reported[i], reported[i]
	case d.what == "acquire" && !d.unreturned:
		return 0, 0
	}
	return min(reported[i], 0), max(reported[i], 0)
}

// books hold all deeds.
type books struct {
	mu     sync.Mutex
	deeds  []*deed
	writes map[string][]*try // by op
	fell   map[string]int    // faults, by kind
}

// try is what a write was to do that was sent.
type try struct {
	errands
	refused bool // it was answered that it was not applied; a copy may have been
}

// errands are what a write is to do: one for each call that it serves, and for each bucket.
type errands []errand

// errand is what one call has a write do to a bucket.
type errand struct {
	*deed
	at     item.Key
	change []int64
}

type askedKey struct{}

// onWrite notes in ctx whom a write serves, and with what.
func (b *books) onWrite(ctx context.Context, all []*scheduler.Request) context.Context {
	var a errands
	for _, r := range all {
		d, _ := r.Served().Ctx.Value(deedKey{}).(*deed)
		r.Costs(func(of *store.Spec, entity string, cost []int64) {
			at := item.Key{PK: "ENTITY#" + entity, SK: "#BUCKET#" + of.Resource}
			a = append(a, errand{d, at, slices.Clone(cost)})
		})
	}
	return context.WithValue(ctx, askedKey{}, a)
}

// undone is what giving back those who take comes to.
func (a errands) undone() (back errands) {
	for _, e := range a {
		if slices.ContainsFunc(e.change, positive) && e.what == "acquire" {
			e.change = bucket.Negated(e.change)
			back = append(back, e)
		}
	}
	return back
}

// bookCopy books a late copy of a write that takes more than it gives back. It forges nothing, so a call that
// takes is charged with all of it. Which of the op's tries it was, nobody knows.
func (a errands) bookCopy(at item.Key, net []int64) {
	for _, e := range a {
		if e.at == at && slices.ContainsFunc(e.change, positive) {
			e.book(at, net)
			return
		}
	}
}

// comesTo reports whether a changes the bucket at a key by so much.
func (a errands) comesTo(at item.Key, change []int64) bool {
	sum := make([]int64, len(change))
	for _, e := range a {
		for i := range e.change {
			if e.at == at {
				sum[i] += e.change[i]
			}
		}
	}
	return slices.Equal(sum, change)
}

func (b *books) open(what string, change map[item.Key][]int64) *deed {
	d := &deed{what: what, change: change, net: map[item.Key][]int64{}}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.deeds = append(b.deeds, d)
	return d
}

func (b *books) befell(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.fell[what]++
}

// answer counts what the script does not know of: writes that met a transaction.
func (b *books) answer(_ context.Context, e store.StoreEvent) {
	if e.Outcome == wire.Conflict.String() {
		b.befell("conflicts")
	}
}

// Handle implements slog.Handler for what no caller is told: a release that did not get through.
func (b *books) Handle(ctx context.Context, r slog.Record) error {
	if d, ok := ctx.Value(deedKey{}).(*deed); ok && strings.Contains(r.Message, "release did not get through") {
		r.Attrs(func(a slog.Attr) bool {
			if err, ok := a.Value.Any().(error); ok {
				d.failed = err
			}
			return true
		})
	}
	return nil
}

func (b *books) Enabled(context.Context, slog.Level) bool { return true }
func (b *books) WithAttrs([]slog.Attr) slog.Handler       { return b }
func (b *books) WithGroup(string) slog.Handler            { return b }

// scribe is an API that notes whose writes are whose, and whose give-backs were not answered.
type scribe struct {
	wire.API
	*books
}

// sends notes what a write is to do, by its op, and returns the try. A write for no call, such as the repair
// of a ttl, changes nothing. An undo gives back what a try of another op was to take.
func (s *scribe) sends(ctx context.Context, values codec.Item, op string) *try {
	id, ok := values[op].(*types.AttributeValueMemberS)
	if !ok {
		return &try{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := &try{}
	sent.errands, _ = ctx.Value(askedKey{}).(errands)
	s.writes[id.Value] = append(s.writes[id.Value], sent)
	if of, ok := values[":undo"].(*types.AttributeValueMemberS); ok {
		for _, lost := range s.writes[of.Value] {
			s.writes[id.Value] = append(s.writes[id.Value], &try{errands: lost.undone()})
			sent.errands = append(sent.errands, lost.undone()...)
		}
	}
	return sent
}

// answered notes how a write ended.
func (t *try) answered(err error) {
	if !unanswered(err) {
		t.refused = err != nil
		return
	}
	for _, e := range t.errands {
		if e.deed != nil && gives(e.change) {
			e.mu.Lock()
			e.unreturned = true
			e.mu.Unlock()
		}
	}
}

// unanswered reports that a write's error leaves open whether it was applied.
func unanswered(err error) bool {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return api.ErrorFault() == smithy.FaultServer
	}
	return err != nil && !errors.Is(err, syscall.ECONNREFUSED)
}

func (s *scribe) PutItem(
	ctx context.Context,
	in *dynamodb.PutItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.PutItemOutput, error) {
	a := s.sends(ctx, in.Item, "op")
	out, err := s.API.PutItem(ctx, in, opts...)
	a.answered(err)
	return out, err
}

func (s *scribe) UpdateItem(
	ctx context.Context,
	in *dynamodb.UpdateItemInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	a := s.sends(ctx, in.ExpressionAttributeValues, ":op")
	out, err := s.API.UpdateItem(ctx, in, opts...)
	a.answered(err)
	return out, err
}

func isAdjust(in *dynamodb.UpdateItemInput) bool { return adjusts(*in.ConditionExpression) }

func adjusts(condition string) bool { return strings.Contains(condition, "attribute_exists") }

func isReversal(in *dynamodb.UpdateItemInput) bool {
	return strings.Contains(*in.ConditionExpression, " AND op = :undo ")
}

func (s *scribe) TransactWriteItems(
	ctx context.Context,
	in *dynamodb.TransactWriteItemsInput,
	opts ...func(*dynamodb.Options),
) (*dynamodb.TransactWriteItemsOutput, error) {
	var a *try
	if item := in.TransactItems[0]; item.Put != nil { // all have the same op
		a = s.sends(ctx, item.Put.Item, "op")
	} else {
		a = s.sends(ctx, item.Update.ExpressionAttributeValues, ":op")
	}
	out, err := s.API.TransactWriteItems(ctx, in, opts...)
	a.answered(err)
	return out, err
}

// enter books what the table's stream has of limits, by resource: to the calls of the try that was applied,
// which is known by what it has changed. A record of nobody's is an error, and so is one that no try was to
// bring about.
func (b *books) enter(t testing.TB, client *dynamodbstreams.Client, arn string, limits map[string][]string) {
	t.Helper()
	seen := map[string]bool{} // writes that were applied, by op and bucket
	for record := range records(t, client, arn) {
		key, change := record.Dynamodb.Keys, record.Dynamodb
		at := item.Key{PK: streamText(key[item.PK]), SK: streamText(key[item.SK])}
		resource, isBucket := strings.CutPrefix(at.SK, "#BUCKET#")
		if !isBucket {
			continue
		}
		tries := b.writes[streamText(change.NewImage["op"])]
		if tries == nil || record.EventName == streamtypes.OperationTypeRemove {
			t.Fatalf("%s of %v is nobody's", record.EventName, at)
		}
		net := make([]int64, len(limits[resource]))
		for i, limit := range limits[resource] {
			net[i] = streamNumber(change.NewImage["b_"+limit+"_tc"]) - streamNumber(change.OldImage["b_"+limit+"_tc"])
		}
		applied := slices.IndexFunc(tries, func(sent *try) bool { return !sent.refused && sent.comesTo(at, net) })
		if applied < 0 {
			applied = slices.IndexFunc(tries, func(sent *try) bool { return sent.comesTo(at, net) })
		}
		id := streamText(change.NewImage["op"]) + at.PK + at.SK
		switch {
		case applied >= 0 && seen[id] && !gives(net):
			tries[applied].bookCopy(at, net)
		case applied >= 0:
			seen[id] = true
			for _, e := range tries[applied].errands {
				if e.at == at {
					e.book(at, e.change)
				}
			}
		case slices.ContainsFunc(net, func(n int64) bool { return n != 0 }): // else a ttl was repaired
			t.Fatalf("%v was changed by %v, which none of %d tries was to do", at, net, len(tries))
		}
	}
}

// book adds what a write has done for d.
func (d *deed) book(at item.Key, change []int64) {
	if d.net[at] == nil {
		d.net[at] = make([]int64, len(change))
	}
	for i, n := range change {
		d.net[at][i] += n
	}
}

func streamText(v streamtypes.AttributeValue) string {
	s, _ := v.(*streamtypes.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

// streamNumber returns a number, 0 where there is none.
func streamNumber(v streamtypes.AttributeValue) int64 {
	n, _ := v.(*streamtypes.AttributeValueMemberN)
	if n == nil {
		return 0
	}
	return number(&types.AttributeValueMemberN{Value: n.Value})
}

// audit is what the books come to.
type audit struct {
	calls map[string]int // by what they were and how they ended
	// admitted at least and at most, by what callers were told, and the table's tc; millitokens
	reported, most, charged int64
	open                    int // deeds of which the API does not say what they did
	wrong                   []string
}

// audit holds every deed, and every bucket's sum, to what callers were told. tc has the table's.
func (b *books) audit(tc map[item.Key][]int64, inOrder bool) audit {
	a := audit{calls: map[string]int{}}
	type sums struct{ least, most, net []int64 }
	by := map[item.Key]sums{}
	for at, charged := range tc {
		by[at] = sums{make([]int64, len(charged)), make([]int64, len(charged)), make([]int64, len(charged))}
	}
	for _, d := range b.deeds {
		a.calls[d.what+d.ended()]++
		touched := maps.Clone(d.change)
		maps.Copy(touched, d.net)
		isOpen := false
		for at := range touched {
			if wrong := d.wrong(at, inOrder); wrong != "" {
				a.wrong = append(a.wrong, wrong)
			}
			for i := range tc[at] {
				least, most := d.bounds(at, i)
				isOpen = isOpen || least < most
				by[at].least[i] += least
				by[at].most[i] += most
				if d.net[at] != nil {
					by[at].net[i] += d.net[at][i]
				}
			}
		}
		if isOpen {
			a.open++
		}
	}
	for at, sum := range by {
		for i, charged := range tc[at] {
			a.reported, a.most, a.charged = a.reported+sum.least[i], a.most+sum.most[i], a.charged+charged
			switch {
			case sum.net[i] != charged:
				a.wrong = append(
					a.wrong,
					fmt.Sprintf("%s%s has tc %d, its writes come to %d", at.PK, at.SK, charged, sum.net[i]),
				)
			case charged < sum.least[i], inOrder && charged > sum.most[i]:
				a.wrong = append(
					a.wrong,
					fmt.Sprintf(
						"%s%s was charged %d for between %d and %d",
						at.PK,
						at.SK,
						charged,
						sum.least[i],
						sum.most[i],
					),
				)
			}
		}
	}
	return a
}

// ended says how d ended.
func (d *deed) ended() string {
	switch {
	case d.failed == nil:
		return ""
	case isA[*store.DeniedError](d.failed):
		return " denied"
	case isA[*store.ContendedError](d.failed):
		return " contended"
	case errors.Is(d.failed, context.Canceled):
		return " cancelled"
	case isA[*store.UnavailableError](d.failed):
		return " unavailable"
	}
	return " failed otherwise"
}
