package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/sluice-go/sluice/runtime/dynamo/internal/layout"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/wire"
)

// Describer is the part of *dynamodb.Client that CheckTable calls.
type Describer interface {
	layout.Describer
	DescribeContinuousBackups(
		context.Context,
		*dynamodb.DescribeContinuousBackupsInput,
		...func(*dynamodb.Options),
	) (*dynamodb.DescribeContinuousBackupsOutput, error)
}

// Note is a fact about a table that an operator may want to know. It is not a mistake.
type Note struct {
	What string
	Do   string // what to do about it, or its consequence; may be empty
}

// CheckTable compares a table with Table's layout, and its version item with the layouts that this program
// knows. The error joins a *store.SetupError for each mistake. CheckTable finds more than a Limiter's Check:
// a stream without both images, or an incomplete index, does not break acquires. The notes come with or
// without an error.
func CheckTable(ctx context.Context, client Describer, table string) ([]Note, error) {
	v, t, err := layout.Check(ctx, client, table)
	if t == nil {
		return nil, err
	}
	errs := []error{err}
	errs = append(errs, checkStream(table, t)...)
	errs = append(errs, checkIndexes(table, t)...)
	notes := describe(t)
	if v.Layout == layout.Carrying {
		notes = append(notes, Note{
			What: "it may hold per-limit items",
			Do:   "use migrating.New in all programs, until `sluice migrate --cleanup` has removed the last of them",
		})
	}
	recovery, err := noteRecovery(ctx, client, table)
	errs = append(errs, err)
	return append(notes, recovery...), errors.Join(errs...)
}

// CheckOwner compares the owner that a table records with owner, that of the caller's limits.yaml. Every
// program that writes to a table on its own account calls it first. It changes nothing: the Check of a
// Limiter records the owner. It returns one of:
//   - nil, if the table records this owner or none,
//   - a *store.SetupError that names both, if it records another one, also if owner is "",
//   - a *store.SetupError, or a *store.UnavailableError if DynamoDB does not answer.
func CheckOwner(ctx context.Context, client Getter, table, owner string) error {
	return layout.CheckOwner(ctx, client, table, owner)
}

// checkStream returns a *store.SetupError for each mistake in a table's stream.
func checkStream(table string, t *types.TableDescription) []error {
	want := Table(table).StreamSpecification.StreamViewType
	enable := fmt.Sprintf(
		"`aws dynamodb update-table --table-name %s --stream-specification StreamEnabled=true,StreamViewType=%s`",
		table,
		want,
	)
	switch got := t.StreamSpecification; {
	case got == nil || !aws.ToBool(got.StreamEnabled):
		return []error{layout.Wrong(table, "run "+enable+": usage and regional sync read it", "it has no stream")}
	case got.StreamViewType != want:
		return []error{
			layout.Wrong(table, "disable it, and run "+enable+": what was consumed is the difference of two images",
				"its stream has %s, not %s", got.StreamViewType, want),
		}
	}
	return nil
}

// describe returns the notes that a table's description gives.
func describe(t *types.TableDescription) []Note {
	notes := []Note{{What: "billing is " + billing(t)}}
	if t.TableStatus == types.TableStatusUpdating {
		notes = append(notes, Note{What: "it is UPDATING", Do: "it serves meanwhile"})
	}
	extra := func(name *string, p *types.Projection) {
		cost := "every write of what it projects costs once more, and acquires twice where it holds buckets"
		if p != nil && p.ProjectionType == types.ProjectionTypeKeysOnly {
			cost = "every write that changes its keys costs once more"
		}
		notes = append(notes, Note{
			What: fmt.Sprintf("index %s is not sluice's and projects %s", aws.ToString(name), layout.Projection(p)),
			Do:   "delete it if nobody queries it: " + cost,
		})
	}
	for _, i := range t.GlobalSecondaryIndexes {
		if !isOwnIndex(aws.ToString(i.IndexName)) {
			extra(i.IndexName, i.Projection)
		}
	}
	for _, i := range t.LocalSecondaryIndexes {
		extra(i.IndexName, i.Projection)
	}
	if len(t.Replicas) > 0 {
		var regions []string
		for _, replica := range t.Replicas {
			regions = append(regions, aws.ToString(replica.RegionName))
		}
		notes = append(notes, Note{
			What: "it is replicated to " + strings.Join(regions, ", "),
			Do: "let one region alone acquire: of two regions' writes to a bucket the last one wins, " +
				"and the other's charge is lost",
		})
	}
	if !aws.ToBool(t.DeletionProtectionEnabled) {
		notes = append(
			notes,
			Note{
				What: "deletion protection is off",
				Do:   "`" + protectCommand(aws.ToString(t.TableName)) + "` switches it on",
			},
		)
	}
	return notes
}

// noteRecovery returns a note if point-in-time recovery is off. It returns none if the caller may not ask, or
// if the service does not answer the question, as engines for tests do not.
func noteRecovery(ctx context.Context, client Describer, table string) ([]Note, error) {
	out, err := client.DescribeContinuousBackups(
		ctx,
		&dynamodb.DescribeContinuousBackupsInput{TableName: &table},
	)
	if api, ok := errors.AsType[smithy.APIError](err); ok && api.ErrorCode() == "AccessDeniedException" ||
		isUnknownOperation(err) {
		return nil, nil
	}
	if err != nil {
		return nil, wire.CallError(table, err)
	}
	if d := out.ContinuousBackupsDescription; d == nil || d.PointInTimeRecoveryDescription == nil ||
		d.PointInTimeRecoveryDescription.PointInTimeRecoveryStatus != types.PointInTimeRecoveryStatusDisabled {
		return nil, nil
	}
	return []Note{{
		What: "point-in-time recovery is off",
		Do: "`sluice table create --table " + table + " --recoverable` switches it on, on AWS: " +
			"it brings back what a mistake deleted",
	}}, nil
}
