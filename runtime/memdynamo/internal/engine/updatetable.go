package engine

import (
	"context"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// updateTableInput is UpdateTable's input, as far as this engine can change a table.
type updateTableInput struct {
	TableName                   *string
	BillingMode                 *string
	ProvisionedThroughput       *provisionedThroughput
	StreamSpecification         *streamSpecification
	DeletionProtectionEnabled   *bool
	GlobalSecondaryIndexUpdates []struct{}
}

// updateTable changes a table's billing, stream and protection.
func updateTable(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[updateTableInput](input)
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	t, err := db.lookupNamed(*r.TableName)
	if err != nil {
		return nil, err
	}
	if err := r.checkAgainst(t); err != nil {
		return nil, err
	}
	if r.DeletionProtectionEnabled != nil {
		t.protected = *r.DeletionProtectionEnabled
	}
	t.bill(r.BillingMode, r.ProvisionedThroughput, m.now)
	if s := r.StreamSpecification; s != nil {
		if *s.StreamEnabled {
			db.enableStream(t, *s.StreamViewType, m.now)
		} else {
			t.Stream().Disable(m.now)
		}
	}
	return reply(describedTable{t.describe()})
}

// validate errs where the parameters break rules whatever the table is.
func (r updateTableInput) validate() error {
	if err := checkNamed(r.TableName); err != nil {
		return err
	}
	var c constraints
	c.enum("billingMode", r.BillingMode, provisioned, onDemand)
	c.throughput("provisionedThroughput", r.ProvisionedThroughput)
	c.stream(r.StreamSpecification)
	if err := c.err(); err != nil {
		return err
	}
	if len(r.GlobalSecondaryIndexUpdates) > 0 {
		return exception.Invalid("GlobalSecondaryIndexUpdates is not supported by this engine: create the table with its indexes")
	}
	if r.BillingMode == nil && r.ProvisionedThroughput == nil && r.StreamSpecification == nil && r.DeletionProtectionEnabled == nil {
		return exception.Invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
			"GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, " +
			"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required")
	}
	if r.DeletionProtectionEnabled != nil && (r.BillingMode != nil || r.ProvisionedThroughput != nil || r.StreamSpecification != nil) {
		return invalidParameters("DeletionProtection modification must be the only operation in the request")
	}
	if r.StreamSpecification != nil && r.ProvisionedThroughput != nil {
		return invalidParameters("You cannot modify stream status while updating table IOPS")
	}
	return nil
}

// checkAgainst errs where the parameters do not fit the table as it is.
func (r updateTableInput) checkAgainst(t *tableState) error {
	if p := r.ProvisionedThroughput; p != nil {
		if r.BillingMode == nil && t.billing == onDemand || r.BillingMode != nil && *r.BillingMode == onDemand {
			return invalidParameters("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified " +
				"when BillingMode is PAY_PER_REQUEST")
		}
		if err := p.check(); err != nil {
			return err
		}
		if t.billing == provisioned && p.describe() == t.throughput.describe() {
			return exception.Invalid("The provisioned throughput for the table will not change. The requested value equals the "+
				"current value. Current ReadCapacityUnits provisioned for the table: %d. Requested ReadCapacityUnits: %[1]d. "+
				"Current WriteCapacityUnits provisioned for the table: %d. Requested WriteCapacityUnits: %[2]d. "+
				"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
				*p.ReadCapacityUnits, *p.WriteCapacityUnits)
		}
	} else if r.BillingMode != nil && *r.BillingMode == provisioned && t.billing == onDemand {
		return invalidParameters("ProvisionedThroughput must be specified when BillingMode is PROVISIONED")
	}
	s := r.StreamSpecification
	if s == nil {
		return nil
	}
	enabled := t.Stream() != nil && t.Stream().Enabled
	switch {
	case *s.StreamEnabled && s.StreamViewType == nil:
		return invalidParameters("If stream is being enabled then UpdateViewType is required")
	case !*s.StreamEnabled && s.StreamViewType != nil:
		return invalidParameters("If stream is being disabled, then UpdateViewType must not be specified")
	case *s.StreamEnabled && enabled:
		return exception.Invalid("Table already has an enabled stream: TableName: %s", t.Def.Name)
	case !*s.StreamEnabled && !enabled:
		return exception.Invalid("Table has no stream to disable: TableName: %s", t.Def.Name)
	}
	return nil
}

// bill changes how the table is billed.
func (t *tableState) bill(mode *string, p *provisionedThroughput, now time.Time) {
	if mode != nil && *mode == onDemand && t.billing != onDemand {
		t.billing, t.onDemandFrom, t.throughput = onDemand, now, provisionedThroughput{}
		clear(t.indexes)
	}
	if p != nil {
		t.billing, t.throughput = provisioned, *p
	}
}
