package fills

import (
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Granted returns the put of the item that has g count once. It has what g adds to each limit, for a later
// one of the same id, and when that was.
func Granted(table string, spec *store.Spec, g *store.Grant, now time.Time) *types.Put {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	stored := item.GrantKey(g.Entity, spec.ResourceOf(g.Kind), g.ID)
	stored["granted_at"] = number(now.UnixMilli())
	stored[item.TTL] = number(now.Add(store.GrantKept).Unix())
	for i, n := range g.Amounts {
		if n > 0 {
			stored[item.GrantAttribute(spec.Limits[i])] = number(n)
		}
	}
	once := "attribute_not_exists(" + item.PK + ")"
	return &types.Put{
		TableName: &table, Item: stored, ConditionExpression: &once,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
}

// Amounts reads what the grant of such an item has added, by limit. A number that is none counts as -1, which
// no grant has.
func Amounts(spec *store.Spec, granted item.Item) []int64 {
	amounts := make([]int64, len(spec.Limits))
	for i, name := range spec.Limits {
		stored, ok := granted[item.GrantAttribute(name)]
		if !ok {
			continue
		}
		amounts[i] = -1
		if number, ok := stored.(*types.AttributeValueMemberN); ok {
			if n, err := strconv.ParseInt(number.Value, 10, 64); err == nil {
				amounts[i] = n
			}
		}
	}
	return amounts
}

// Grant returns the write that adds g at an instant, in ms, to the bucket, which has the limits of g. Usage
// does not count it. It opens windows that are over, and clears what leases held in them. It applies
// only to the windows of the image, also to those of other limits, since their ends decide about the ttl. It
// fails with an *InvalidError if a balance would be too large.
func (b Bucket) Grant(spec *store.Spec, g *store.Grant, op string, now int64) (*types.Update, error) {
	w := b.write(op, expression.Name("cv").Equal(expression.Value(b.Version)))
	for _, extra := range b.Extra {
		if extra.Windowed() {
			w.whenIs(extra.Name, item.WindowField, extra.Ends)
		}
	}
	ttl := b.TTL
	for i, n := range g.Amounts {
		if n == 0 {
			continue
		}
		after := w.grant(spec.Limits[i], n, g.Windows[i], now)
		if after.Tokens > store.MostGranted {
			return nil, g.TooMuch(spec, i)
		}
		ttl = max(ttl, bucket.Expiry(after, now))
	}
	if ttl > b.TTL { // other writers may have raised it more
		w.update = w.update.Set(expression.Name(item.TTL), expression.Value(ttl))
		w.when(expression.Name(item.TTL).LessThanEqual(expression.Value(ttl)))
	}
	u, err := w.done("grant")
	if err != nil {
		return nil, err
	}
	return u.part(), nil
}

// grant adds n to a limit whose windows are opened by c, and returns its balance then.
func (w *writer) grant(limit string, n int64, c *bucket.Calendar, now int64) bucket.Balance {
	b, _ := w.Find(limit)
	if !b.Over(now) {
		w.update = w.update.Add(at(limit, "tk"), expression.Value(n))
		b.Tokens = bucket.Add(b.Tokens, n)
		return b
	}
	step, _ := b.Step(c, 0, 1, 0, now) // as a claim does: the balance must be the image's
	w.whenIs(limit, "tk", b.Tokens)
	after := b
	after.Tokens, after.Ends = bucket.Add(bucket.Add(b.Tokens, step.Fill), n), step.Ends
	w.set(limit, "tk", after.Tokens)
	w.set(limit, item.WindowField, after.Ends)
	if b.Holds() {
		hold, _ := b.Sweep(0, bucket.NoMoves, true, now)
		after = after.Apply(hold)
		for k, held := range [...]int64{b.Cells[0], b.Cells[1], b.Epoch} {
			w.whenIs(limit, item.HoldFields[k], held)
		}
		w.cells(limit, after.Cells, after.Epoch)
	}
	return after
}

// New returns the put of a bucket that does not exist yet.
func New(table string, stored item.Item) *types.Put {
	missing := "attribute_not_exists(" + item.PK + ")"
	return &types.Put{TableName: &table, Item: stored, ConditionExpression: &missing}
}

// Full returns a new bucket with limits, to which g is added at an instant, in ms. It fails with an
// *InvalidError if a balance would be too large.
func Full(spec *store.Spec, limits []bucket.Limit, g *store.Grant, now int64) (*bucket.Image, error) {
	img := &bucket.Image{Refilled: now, Balances: bucket.Full(limits)}
	for i := range img.Balances {
		b := &img.Balances[i]
		if b.Absent() {
			continue
		}
		if spec.Held != nil && spec.Held[i] {
			*b = b.Apply(bucket.NewHold(0, 0, now))
		}
		if b.Windowed() {
			b.Ends = g.Windows[i].First(g.Amounts[i], now)
		}
		if b.Tokens = bucket.Add(b.Tokens, g.Amounts[i]); b.Tokens > store.MostGranted {
			return nil, g.TooMuch(spec, i)
		}
		img.TTL = max(img.TTL, bucket.Expiry(*b, now))
	}
	return img, nil
}

// MissesLimits reports whether the bucket does not have a limit of g yet, or has it without windows.
func (b Bucket) MissesLimits(spec *store.Spec, g *store.Grant) bool {
	for i, n := range g.Amounts {
		if one, _ := b.Find(spec.Limits[i]); n > 0 && !one.Windowed() {
			return true
		}
	}
	return false
}

// InOrder returns the image with the limits of names in their order, and the others as Extra.
func (b Bucket) InOrder(names []string) *bucket.Image {
	img := *b.Image
	img.Balances, img.Missing = make([]bucket.Balance, len(names)), make([]bool, len(names))
	for i, name := range names {
		balance, has := b.Find(name)
		img.Balances[i], img.Missing[i] = balance, !has
	}
	img.Extra = slices.DeleteFunc(slices.Clone(b.Extra), func(n bucket.Named) bool {
		return slices.Contains(names, n.Name)
	})
	return &img
}
