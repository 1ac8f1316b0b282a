package traffic

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// Bare starts a process that limits nothing: each call is one write without a condition, which counts the
// call in its project's bucket. A call cannot cost less. It has the deadline that sluice's calls have.
func Bare(engine *memdynamo.Engine, load *Load) (Process, error) {
	return bare{engine.Client(), load.Resource}, nil
}

type bare struct {
	client   *dynamodb.Client
	resource string
}

// Acquire implements Process.
func (b bare) Acquire(ctx context.Context, who Entity) (Admission, error) {
	ctx, cancel := context.WithTimeout(ctx, store.DefaultBudget)
	defer cancel()
	_, err := b.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: aws.String(Table),
		Key: map[string]types.AttributeValue{
			"PK": &types.AttributeValueMemberS{Value: "ENTITY#project-" + who.Project},
			"SK": &types.AttributeValueMemberS{Value: "#BUCKET#" + b.resource},
		},
		UpdateExpression: aws.String("ADD b_rps_tc :token"),
		ExpressionAttributeValues: map[string]types.AttributeValue{
			":token": &types.AttributeValueMemberN{Value: "1000"},
		},
	})
	return Recorded, err
}

// Close implements Process.
func (bare) Close(context.Context) error { return nil }
