package traffic

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// charged is what the buckets of the table count as consumed, in millitokens.
type charged struct {
	projects, users int64
	most            int64 // of one bucket
	held            int64 // slots that are not free, in tokens
}

// readCharged adds up the buckets of the table.
func readCharged(ctx context.Context, engine *memdynamo.Engine) (sum charged, err error) {
	pages := dynamodb.NewScanPaginator(engine.Client(), &dynamodb.ScanInput{
		TableName: aws.String(Table), ConsistentRead: aws.Bool(true),
	})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return sum, err
		}
		for _, item := range page.Items {
			if err := sum.add(item); err != nil {
				return sum, err
			}
		}
	}
	return sum, nil
}

// add adds an item, if it is a bucket.
func (c *charged) add(item map[string]types.AttributeValue) error {
	pk, _ := item["PK"].(*types.AttributeValueMemberS)
	if pk == nil {
		return nil
	}
	n, ok, err := number(item, "b_rps_tc")
	if free, slots, errSlots := number(item, "b_parallel_tk"); slots {
		var burst int64
		var errBurst error
		n, ok, err = number(item, "b_parallel_tc")
		burst, _, errBurst = number(item, "b_parallel_bx")
		c.held += (burst - free) / bucket.Milli
		err = errors.Join(err, errSlots, errBurst)
	}
	if err != nil || !ok {
		return err
	}
	if strings.HasPrefix(pk.Value, "ENTITY#user-") {
		c.users += n
	} else {
		c.projects += n
	}
	c.most = max(c.most, n)
	return nil
}

// number returns an attribute of an item. ok is false if the item has none.
func number(item map[string]types.AttributeValue, name string) (n int64, ok bool, err error) {
	v, ok := item[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, false, nil
	}
	if n, err = strconv.ParseInt(v.Value, 10, 64); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return n, true, err
}

// balance compares what the table counts with the calls that it should have a record of, and with the limit:
//   - Tokens are forged if calls were admitted that no bucket counts.
//   - They are lost if buckets count calls that were not admitted.
//   - They are above the limit if a bucket counts more than its burst and the refill of the whole run.
func (r *run) balance(before, after charged, elapsed time.Duration) {
	r.counted(before, after)
	limit := r.load.PerSecond() + int64(elapsed.Seconds()*float64(r.load.PerSecond()))
	r.sum.AboveLimit = max(0, after.most/bucket.Milli-limit)
}

// counted holds what the table counts against the calls that it should have a record of.
func (r *run) counted(before, after charged) {
	admitted := int64(r.sum.Admitted[Recorded])
	kinds := []int64{after.projects - before.projects}
	if r.load.Users > 0 || r.load.Fresh {
		kinds = append(kinds, after.users-before.users)
	}
	for _, n := range kinds {
		counted := n / bucket.Milli
		r.sum.Forged += max(0, admitted-counted)
		r.sum.Lost += max(0, counted-admitted)
	}
}
