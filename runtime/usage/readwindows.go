package usage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// WindowQuestion selects windows of limits for ReadWindows.
type WindowQuestion struct {
	Entity   string // as stored: user-123
	Resource string // empty: all
	Limit    string // empty: all
	// Since and Until bound the windows: those that end after Since, and not after Until. Zero is no bound.
	Since, Until time.Time
}

// WindowUsage is the consumption of one limit in one of its own windows.
type WindowUsage struct {
	Entity, Resource, Limit string
	// End is when the window ends, in UTC. It is zero for what was consumed before the first window of a bucket:
	// nothing, unless a bucket that expired since was given something back.
	End         time.Time
	Millitokens int64 // negative if more was refunded than charged
	Writes      int64 // the writes that took tokens, which are not calls
}

// ReadWindows yields the windows of windowed limits that q selects, sorted by resource and limit, and then by
// end. The sum over all windows of a limit is what its hours and its days add up to. A reset begins a window
// that ends 1 ms after the one before. If Since is zero, usage from before the first window comes first.
// Errors and consistency are as with Read, and so is the cost without a resource.
func ReadWindows(ctx context.Context, client Querier, table string, q WindowQuestion) iter.Seq2[WindowUsage,
	error] {
	return func(yield func(WindowUsage, error) bool) {
		if q.Entity == "" {
			yield(WindowUsage{}, errors.New("usage.ReadWindows: the question names no entity, such as user-123"))
			return
		}
		query(ctx, client, table, q.Entity, q.keys(), q.decode)(yield)
	}
}

// keys returns the narrowest key condition for the windows of q that does not compare ends: as text they sort
// by time only between 2001 and 2286. A limit has some dozens or hundreds of windows.
func (q WindowQuestion) keys() expression.KeyConditionBuilder {
	prefix := item.UsagePrefix
	if q.Resource != "" {
		prefix += q.Resource + "#" + item.WindowSpan + "#"
		if q.Limit != "" {
			prefix += q.Limit + "#"
		}
	}
	return expression.Key(item.PK).Equal(expression.Value(item.EntityPrefix + q.Entity)).
		And(expression.Key(item.SK).BeginsWith(prefix))
}

// asks reports whether q selects a window of this limit that ends then.
func (q WindowQuestion) asks(limit string, ends time.Time) bool {
	return (q.Limit == "" || limit == q.Limit) && (q.Since.IsZero() || ends.After(q.Since)) &&
		(q.Until.IsZero() || !ends.After(q.Until))
}

// decode decodes the item of a limit's window. asked is false if q does not select it.
func (q WindowQuestion) decode(stored codec.Item) (u WindowUsage, asked bool, err error) {
	d := codec.Decoder{Item: stored}
	sort := d.Text(item.SK)
	parts := sortParts(sort)
	if len(parts) < 2 || parts[1] != item.WindowSpan {
		return u, false, nil
	}
	var ends int64
	if len(parts) == 4 {
		ends, err = strconv.ParseInt(parts[3], 10, 64)
	}
	if len(parts) != 4 || err != nil || ends < 0 || ends > latestEnd {
		return u, false, malformed(stored, &codec.AttributeError{Attr: item.SK, Got: fmt.Sprintf("%q", sort),
			Want: "#USAGE#<resource>#window#<limit>#<end in ms>"})
	}
	u = WindowUsage{Entity: q.Entity, Resource: parts[0], Limit: parts[2]}
	if ends > 0 {
		u.End = time.UnixMilli(ends).UTC()
	}
	if !q.asks(u.Limit, u.End) {
		return u, false, nil
	}
	u.Millitokens, u.Writes = d.Int(spentPrefix+u.Limit), d.Int("writes")
	if err := d.Err(); err != nil {
		return u, false, malformed(stored, err)
	}
	return u, true, nil
}
