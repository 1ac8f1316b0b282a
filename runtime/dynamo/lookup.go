package dynamo

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/members"
	"github.com/sluice-go/sluice/runtime/store"
)

// lookupTries is how often a look-up is tried: an acquire waits for it.
const lookupTries = 3

// Member implements store.Session.
func (s *session) Member(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	return s.lookups.Member(ctx, entity)
}

// readMember reads an entity's item.
func (s *session) readMember(ctx context.Context, entity string) (m store.Member, found bool, err error) {
	p := s.patience(lookupTries)
	p.Budget = s.retries // an outage is not to be met by more reads than were asked for
	var out *dynamodb.GetItemOutput
	err = p.Do(ctx, func() (err error) {
		began := s.env.Clock.Now()
		out, err = members.Get(ctx, s.api, s.table, entity)
		event := store.StoreEvent{Call: "GetItem", Path: "member", Outcome: "found", Began: began}
		switch {
		case err != nil:
			event.Outcome = "failed"
		case len(out.Item) == 0:
			event.Outcome = "missing"
		}
		if err == nil && out.ConsumedCapacity != nil {
			event.Read = aws.ToFloat64(out.ConsumedCapacity.CapacityUnits)
		}
		s.tell(ctx, event)
		return err
	})
	if err != nil {
		return store.Member{}, false, err
	}
	return members.Decode(entity, out.Item)
}
