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
	AttributeDefinitions        *[]attributeDefinition // of a new index's key
	GlobalSecondaryIndexUpdates *[]globalSecondaryIndexUpdate
}

// updateTable changes a table's billing, stream, protection and global indexes.
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
	created, err := r.checkIndexes(t)
	if err != nil {
		return nil, err
	}
	if r.DeletionProtectionEnabled != nil {
		t.protected = *r.DeletionProtectionEnabled
	}
	t.bill(r.BillingMode, r.ProvisionedThroughput, m.now)
	t.updateIndexes(r, created, m.now)
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
	c.definitions(orNone(r.AttributeDefinitions))
	c.enum("billingMode", r.BillingMode, provisioned, onDemand)
	c.throughput("provisionedThroughput", r.ProvisionedThroughput)
	c.stream(r.StreamSpecification)
	c.indexUpdates(orNone(r.GlobalSecondaryIndexUpdates))
	if err := c.err(); err != nil {
		return err
	}
	updates := orNone(r.GlobalSecondaryIndexUpdates)
	// than protection and indexes
	other := r.BillingMode != nil || r.ProvisionedThroughput != nil || r.StreamSpecification != nil
	if !other && r.DeletionProtectionEnabled == nil && len(updates) == 0 {
		return exception.Invalid("At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, " +
			"GlobalSecondaryIndexUpdates, SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, " +
			"ReplicaTransitRoleArn, " +
			"MultiRegionConsistency, DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is " +
			"required")
	}
	if r.GlobalSecondaryIndexUpdates != nil && len(updates) == 0 {
		return invalidParameters("List of GlobalSecondaryIndexUpdates is empty")
	}
	if err := checkActions(updates); err != nil {
		return err
	}
	if r.DeletionProtectionEnabled != nil && (other || len(updates) > 0) {
		return invalidParameters("DeletionProtection modification must be the only operation in the request")
	}
	if r.StreamSpecification != nil && r.ProvisionedThroughput != nil {
		return invalidParameters("You cannot modify stream status while updating table IOPS")
	}
	switch {
	case online(updates) == 0:
		return nil
	case r.ProvisionedThroughput != nil:
		return invalidParameters("You cannot create or delete index while updating table IOPS")
	case r.StreamSpecification != nil:
		return invalidParameters("You cannot create or delete index while changing stream status")
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
			return willNotChange("the table", "the table", p)
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

// willNotChange is the answer to a new throughput that is the old one. The two names are of what has it.
func willNotChange(of, provisionedFor string, p *provisionedThroughput) error {
	return exception.Invalid(
		"The provisioned throughput for %s will not change. The requested value equals the current value. "+
			"Current ReadCapacityUnits provisioned for %s: %d. Requested ReadCapacityUnits: %[3]d. "+
			"Current WriteCapacityUnits provisioned for %[2]s: %[4]d. Requested WriteCapacityUnits: %[4]d. "+
			"Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits.",
		of, provisionedFor, *p.ReadCapacityUnits, *p.WriteCapacityUnits)
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
