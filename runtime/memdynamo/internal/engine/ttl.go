package engine

import (
	"context"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// timeToLiveSpecification says which attribute holds an item's expiry, and whether items expire.
type timeToLiveSpecification struct {
	AttributeName *string
	Enabled       *bool
}

// updateTimeToLive enables or disables expiry at once, as often as one likes: the service would let an hour
// pass.
func updateTimeToLive(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		TableName               *string
		TimeToLiveSpecification *timeToLiveSpecification
	}](input)
	if err != nil {
		return nil, err
	}
	if err := checkNamed(r.TableName); err != nil {
		return nil, err
	}
	spec := r.TimeToLiveSpecification
	var c constraints
	c.required("timeToLiveSpecification", spec != nil)
	if spec != nil {
		c.keyName("timeToLiveSpecification.attributeName", spec.AttributeName)
		c.required("timeToLiveSpecification.enabled", spec.Enabled != nil)
	}
	if err := c.err(); err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	t, err := db.lookupNamed(*r.TableName)
	if err != nil {
		return nil, err
	}
	switch {
	case t.ttl != "" && t.ttl != *spec.AttributeName:
		return nil, exception.Invalid("TimeToLive is active on a different AttributeName: current AttributeName "+
			"is %s", t.ttl)
	case t.ttl != "" && *spec.Enabled:
		return nil, exception.Invalid("TimeToLive is already enabled")
	case t.ttl == "" && !*spec.Enabled:
		return nil, exception.Invalid("TimeToLive is already disabled")
	}
	t.ttl = ""
	if *spec.Enabled {
		t.ttl = *spec.AttributeName
	}
	t.ExpireBy(t.ttl)
	return reply(struct{ TimeToLiveSpecification *timeToLiveSpecification }{spec})
}

func describeTimeToLive(_ context.Context, db *DB, input []byte) ([]byte, error) {
	return db.onTable(input, func(t *tableState, _ moment) (any, error) {
		var output struct {
			TimeToLiveDescription struct {
				TimeToLiveStatus string
				AttributeName    string `json:",omitempty"`
			}
		}
		d := &output.TimeToLiveDescription
		d.TimeToLiveStatus, d.AttributeName = "DISABLED", t.ttl
		if t.ttl != "" {
			d.TimeToLiveStatus = "ENABLED"
		}
		return output, nil
	})
}
