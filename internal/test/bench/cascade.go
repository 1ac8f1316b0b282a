package main

import (
	"context"
	"strconv"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/internal/test/bench/generated"
)

// parentWrites is a client that counts updates of one item, failed ones too.
type parentWrites struct {
	*dynamodb.Client
	key string // the PK
	n   atomic.Int64
}

// UpdateItem implements dynamo.API.
func (p *parentWrites) UpdateItem(
	ctx context.Context, in *dynamodb.UpdateItemInput, opts ...func(*dynamodb.Options),
) (*dynamodb.UpdateItemOutput, error) {
	if pk, ok := in.Key["PK"].(*types.AttributeValueMemberS); ok && pk.Value == p.key {
		p.n.Add(1)
	}
	return p.Client.UpdateItem(ctx, in, opts...)
}

// cascadeExperiment has 64 children of one parent acquire in one process.
func cascadeExperiment(c conditions) experiment {
	const children = 64
	return experiment{
		rows: []row{{"compensated cascade, 64 children of one parent, per acquire", []figure{
			{name: "parent writes", format: "%.3f parent writes", want: atMost(0.1)},
			{name: "units", format: "%.3f units"},
		}}},
		measure: func(ctx context.Context) ([]float64, error) {
			w, err := newWorld(ctx, c.oneWay)
			if err != nil {
				return nil, err
			}
			api := &parentWrites{Client: w.engine.Client(), key: "ENTITY#project-1"}
			process, err := w.processOn(api)
			if err != nil {
				return nil, err
			}
			callers := make([]caller, children)
			for i := range callers {
				var who generated.SharedEntity = generated.User{ID: strconv.Itoa(i), Project: generated.Project{ID: "1"}}
				callers[i] = func(ctx context.Context) error {
					_, err := process.Shared.Acquire(ctx, who, generated.SharedCost{})
					return err
				}
			}
			if err := once(ctx, callers); err != nil {
				return nil, err
			}
			w.engine.ResetConsumed()
			api.n.Store(0)
			o, _, err := closedLoop(ctx, callers, c.load)
			if err != nil {
				return nil, err
			}
			n := float64(o.admitted)
			return []float64{float64(api.n.Load()) / n, w.consumed().units() / n}, nil
		},
	}
}
