package usage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Querier is the part of *dynamodb.Client that Read calls.
type Querier interface {
	Query(context.Context, *dynamodb.QueryInput, ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error)
}

// Question selects windows for Read.
type Question struct {
	Entity   string // as stored: user-123
	Resource string // empty: all
	Span     Span
	// Since and Until bound the windows: those that hold an instant from Since on and before Until. Zero is no
	// bound.
	Since, Until time.Time
}

// Usage is the content of a window.
type Usage struct {
	Window

	Limits []Spent // by name
	// Writes is the number of writes that took tokens. Calls that come together share one, and a settle above
	// its reserve is one too: it is not the number of calls.
	Writes int64
}

// Spent is the consumption of one limit. It is negative if more was refunded than charged.
type Spent struct {
	Limit       string
	Millitokens int64
}

// Read yields the windows that q selects, sorted by resource and then by start. It ends with the first error:
// DynamoDB's own, or a *store.SetupError for a malformed item. Reads are eventually consistent, at half the
// price: an aggregator lags behind the stream anyway. Without a resource it reads all windows of the entity,
// since only the end of their keys distinguishes them. A client of operator.InNamespace reads those of a
// namespace.
func Read(ctx context.Context, client Querier, table string, q Question) iter.Seq2[Usage, error] {
	return func(yield func(Usage, error) bool) {
		if err := q.check(); err != nil {
			yield(Usage{}, err)
			return
		}
		if !q.Until.IsZero() && !q.Since.Before(q.Until) { // DynamoDB rejects an empty range
			return
		}
		query(ctx, client, table, q.Entity, q.keys(), q.decode)(yield)
	}
}

// query yields the items of an entity in a range of keys, decoded, as far as they are asked for. It ends with
// the first error.
func query[T any](ctx context.Context, client Querier, table, entity string,
	keys expression.KeyConditionBuilder, decode func(codec.Item) (u T, asked bool, err error),
) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		built, err := expression.NewBuilder().WithKeyCondition(keys).Build()
		if err != nil {
			yield(none, fmt.Errorf("expression for the usage of %s: %w", store.Quote(entity), err))
			return
		}
		pages := dynamodb.NewQueryPaginator(client, &dynamodb.QueryInput{
			TableName: &table, KeyConditionExpression: built.KeyCondition(),
			ExpressionAttributeNames: built.Names(), ExpressionAttributeValues: built.Values(),
		})
		for pages.HasMorePages() {
			page, err := pages.NextPage(ctx)
			if err != nil {
				yield(none, fmt.Errorf("read the usage of %s: %w", store.Quote(entity), err))
				return
			}
			for _, item := range page.Items {
				u, asked, err := decode(item)
				if err != nil {
					yield(none, err)
					return
				}
				if asked && !yield(u, nil) {
					return
				}
			}
		}
	}
}

// check rejects a question that no window can match: the empty answer would mean no consumption.
func (q Question) check() error {
	switch {
	case q.Entity == "":
		return errors.New("usage.Read: the question names no entity, such as user-123")
	case !slices.Contains(spans(), q.Span):
		return fmt.Errorf("usage.Read: span %q, want %s or %s", q.Span, Hour, Day)
	}
	return nil
}

// keys returns the narrowest key condition for the windows of q.
func (q Question) keys() expression.KeyConditionBuilder {
	entity := expression.Key(item.PK).Equal(expression.Value(item.EntityPrefix + q.Entity))
	if q.Resource == "" {
		return entity.And(expression.Key(item.SK).BeginsWith(item.UsagePrefix))
	}
	all := item.UsagePrefix + q.Resource + "#" + string(q.Span) + "#"
	from, to := all, all+"~" // above every digit
	if !q.Since.IsZero() {
		from += q.since().Format(q.Span.layout())
	}
	if !q.Until.IsZero() { // decode omits the window that begins at Until
		to = all + q.Until.UTC().Format(q.Span.layout())
	}
	return entity.And(expression.Key(item.SK).Between(expression.Value(from), expression.Value(to)))
}

// since returns the start of the first window.
func (q Question) since() time.Time { return q.Since.UTC().Truncate(q.Span.Length()) }

// asks reports whether q selects windows that begin at start.
func (q Question) asks(start time.Time) bool {
	return (q.Since.IsZero() || !start.Before(q.since())) && (q.Until.IsZero() || start.Before(q.Until))
}

// decode decodes a window's item. asked is false if q does not select it.
func (q Question) decode(stored codec.Item) (u Usage, asked bool, err error) {
	d := codec.Decoder{Item: stored}
	sort := d.Text(item.SK)
	parts := sortParts(sort)
	if len(parts) > 1 && parts[1] == item.WindowSpan {
		return u, false, nil
	}
	if len(parts) != 3 {
		return u, false, malformed(stored, &codec.AttributeError{Attr: item.SK, Got: fmt.Sprintf("%q", sort),
			Want: "#USAGE#<resource>#<span>#<start>"})
	}
	if parts[1] != string(q.Span) {
		return u, false, nil
	}
	start, err := time.Parse(q.Span.layout(), parts[2])
	if err != nil {
		return u, false, malformed(stored, &codec.AttributeError{Attr: item.SK, Got: fmt.Sprintf("%q", sort),
			Want: "a start such as " + q.Span.layout()})
	}
	if !q.asks(start) {
		return u, false, nil
	}
	u = Usage{Window: Window{Entity: q.Entity, Resource: parts[0], Span: q.Span, Start: start},
		Writes: d.Int("writes")}
	var names []string
	for name := range stored {
		if strings.HasPrefix(name, spentPrefix) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		u.Limits = append(u.Limits, Spent{strings.TrimPrefix(name, spentPrefix), d.Int(name)})
	}
	if err := d.Err(); err != nil {
		return u, false, malformed(stored, err)
	}
	return u, true, nil
}

// sortParts returns the parts of a window's sort key after the prefix: resource, span and what follows.
func sortParts(sort string) []string {
	return strings.Split(strings.TrimPrefix(sort, item.UsagePrefix), "#")
}

// malformed is the error of a window's item that cannot be read.
func malformed(stored codec.Item, err error) error {
	return &store.SetupError{
		What: fmt.Sprintf("the window %s is malformed", item.NameOf(stored)),
		Do:   "fix or delete the item",
		Err:  err,
	}
}

// spentPrefix begins the attribute of a limit's consumption; the limit's name follows.
const spentPrefix = "u_"
