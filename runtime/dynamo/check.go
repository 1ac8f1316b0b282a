package dynamo

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/internal/item"
	"github.com/sluice-go/sluice/runtime/store"
)

// Check implements store.Session: it reads the table's description, its TTL and its version item, and compares this
// host's clock with the service's. It changes nothing.
func (s *session) Check(ctx context.Context) error {
	began := s.env.Clock.Now()
	v, _, err := layout.Check(ctx, s.api, s.table)
	if err != nil {
		return err
	}
	if off := wire.Skew(began, s.env.Clock.Now(), v.Metadata); off != 0 {
		return &store.SetupError{
			What: fmt.Sprintf("this host's clock is at least %v %s DynamoDB's", off.Abs().Round(time.Millisecond), aheadOf(off)),
			Do:   "set it by NTP: a clock ahead stops everybody's refill",
		}
	}
	if v.Layout == layout.Carrying && !s.perLimit {
		return &store.SetupError{
			What: fmt.Sprintf("table %s holds per-limit items, which this program would make full buckets beside", s.table),
			Do:   "pass dynamo.PerLimitItems() to dynamo.New, until `sluice migrate --cleanup` has removed the last of them",
		}
	}
	if v.Revision > s.revision {
		// An older binary beside newer ones works, with the buckets' own numbers: no reason not to serve.
		s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: the table has seen a higher revision of limits.yaml: its numbers stay in force",
			slog.String("table", s.table), slog.Int64("seen", v.Revision), slog.Int64("own", s.revision))
	}
	return nil
}

func aheadOf(d time.Duration) string {
	if d > 0 {
		return "ahead of"
	}
	return "behind"
}

// recordRevision notes in the table that this session's revision has reached it, once, in the background. It is a record
// for Check; nothing else reads it, so that losing it to a failure is harmless.
func (s *session) recordRevision(ctx context.Context) {
	s.recorded.Do(func() {
		s.background.Start(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.env.SettleTimeout)
			defer cancel()
			err := s.note(ctx, &dynamodb.UpdateItemInput{
				TableName:                 &s.table,
				Key:                       item.VersionKey(),
				UpdateExpression:          aws.String("SET revision = :revision, layout = if_not_exists(layout, :layout)"),
				ConditionExpression:       aws.String("attribute_not_exists(revision) OR revision < :revision"),
				ExpressionAttributeValues: codec.Item{":revision": codec.N(s.revision), ":layout": codec.N(layout.Buckets)},
			})
			if err != nil {
				s.env.Logger.LogAttrs(ctx, slog.LevelWarn, "sluice: could not note the revision in the table",
					slog.String("table", s.table), slog.Any("error", err))
			}
		})
	})
}

// note writes to the table's own item, whose condition may say that there is nothing to be noted.
func (s *session) note(ctx context.Context, in *dynamodb.UpdateItemInput) error {
	in.ReturnConsumedCapacity = types.ReturnConsumedCapacityTotal
	event := store.StoreEvent{Call: "UpdateItem", Path: "system", Began: s.env.Clock.Now()}
	out, err := s.api.UpdateItem(ctx, in)
	o := wire.Applied
	if err != nil {
		o, _ = wire.Classify(err)
		event.Write = wire.WriteUnits(o, nil)
	} else {
		event.Write = wire.WriteUnits(o, out.ConsumedCapacity)
	}
	event.Outcome = o.String()
	s.tell(ctx, event)
	if o == wire.Refused {
		return nil
	}
	return err
}

// Members implements store.Session. What they write, this session's Member sees at once; others see it when what they
// remember is due.
func (s *session) Members() store.MemberStore {
	return operator.MembersWith(s.api, s.patience(wire.OperatorAttempts), s.lookups.Forget)
}

// Overrides implements store.Session.
func (s *session) Overrides() store.OverrideStore {
	return operator.OverridesWith(s.api, s.patience(wire.OperatorAttempts), s.env.Clock.Now)
}
