package engine

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// Changes of a table's global indexes, as UpdateTable has them.
type (
	globalSecondaryIndexUpdate struct { // one of these
		Create *secondaryIndex
		Update *updateGlobalSecondaryIndexAction
		Delete *deleteGlobalSecondaryIndexAction
	}

	updateGlobalSecondaryIndexAction struct {
		IndexName             *string
		ProvisionedThroughput *provisionedThroughput
	}

	deleteGlobalSecondaryIndexAction struct{ IndexName *string }
)

// indexUpdates holds what is true of each change by itself.
func (c *constraints) indexUpdates(updates []globalSecondaryIndexUpdate) {
	for i, u := range updates {
		at := member("globalSecondaryIndexUpdates", i)
		if u.Create != nil {
			c.index(at+".create", *u.Create)
		}
		if u.Update != nil {
			c.indexName(at+".update.indexName", u.Update.IndexName)
			c.throughput(at+".update.provisionedThroughput", u.Update.ProvisionedThroughput)
		}
		if u.Delete != nil {
			c.indexName(at+".delete.indexName", u.Delete.IndexName)
		}
	}
}

// name returns the name of the index that is to change.
func (u globalSecondaryIndexUpdate) name() string {
	switch {
	case u.Create != nil:
		return *u.Create.IndexName
	case u.Update != nil:
		return *u.Update.IndexName
	default:
		return *u.Delete.IndexName
	}
}

// checkActions errs unless each change is one thing, and is the only one of its index.
func checkActions(updates []globalSecondaryIndexUpdate) error {
	var names []string
	for _, u := range updates {
		given := 0
		for _, is := range [...]bool{u.Create != nil, u.Update != nil, u.Delete != nil} {
			if is {
				given++
			}
		}
		switch {
		case given == 0:
			return invalidParameters("One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, " +
				"GlobalSecondaryIndexUpdate.Delete must not be null")
		case given > 1:
			return invalidParameters(
				"Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate object")
		case slices.Contains(names, u.name()):
			return invalidParameters("Only one global secondary index update per index is allowed simultaneously. "+
				"Index: %s", u.name())
		}
		names = append(names, u.name())
	}
	return nil
}

// online returns how many indexes are to be created or deleted.
func online(updates []globalSecondaryIndexUpdate) int {
	n := 0
	for _, u := range updates {
		if u.Update == nil {
			n++
		}
	}
	return n
}

// checkIndexes errs where the changes of indexes do not fit the table as it is. It returns the index to
// create, or nil.
func (r updateTableInput) checkIndexes(t *tableState) (created *table.IndexDef, err error) {
	billing := t.billing
	if r.BillingMode != nil {
		billing = *r.BillingMode
	}
	updates := orNone(r.GlobalSecondaryIndexUpdates)
	for _, u := range updates {
		switch index := t.index(u.name()); {
		case u.Create != nil && index != nil:
			return nil, exception.Invalid("Attempting to create an index which already exists")
		case u.Create != nil:
			if created, err = t.newIndex(*u.Create, orNone(r.AttributeDefinitions)); err == nil {
				err = checkNewThroughput(*u.Create, billing)
			}
		case index == nil:
			err = exception.New(exception.ResourceNotFound, "Requested resource not found: Index %s for table %s",
				u.name(), t.Def.Name)
		case u.Delete != nil && index.Local:
			err = exception.Invalid("Cannot delete an index that is not a GlobalSecondaryIndex: %s", u.name())
		case u.Update != nil && index.Local:
			err = exception.Invalid("Cannot update an index that is not a GlobalSecondaryIndex: %s", u.name())
		case u.Update != nil:
			err = t.checkThroughput(*u.Update, billing)
		}
		if err != nil {
			return nil, err
		}
	}
	if online(updates) > 1 {
		return nil, exception.New(exception.LimitExceeded,
			"Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table")
	}
	if created != nil && t.globalIndexes() == maxGlobalIndexes {
		return nil, exception.New(exception.LimitExceeded,
			"Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of %d",
			maxGlobalIndexes)
	}
	if billing == provisioned && t.billing == onDemand {
		return created, t.checkAllUpdated(updates)
	}
	return created, nil
}

// index returns the definition of the table's index of that name, or nil.
func (t *tableState) index(name string) *table.IndexDef {
	i := slices.IndexFunc(t.Def.Indexes, func(d table.IndexDef) bool { return d.Name == name })
	if i < 0 {
		return nil
	}
	return &t.Def.Indexes[i]
}

// globalIndexes returns how many there are.
func (t *tableState) globalIndexes() int {
	n := 0
	for _, index := range t.Def.Indexes {
		if !index.Local {
			n++
		}
	}
	return n
}

// newIndex returns the definition of an index for the table, whose key attributes are among those
// definitions.
func (t *tableState) newIndex(
	index secondaryIndex, definitions []attributeDefinition,
) (*table.IndexDef, error) {
	if len(definitions) == 0 {
		return nil, invalidParameters("AttributeDefinitions is not specified for index: %s", *index.IndexName)
	}
	s := newSchema()
	if err := s.define(definitions); err != nil {
		return nil, err
	}
	if len(*index.KeySchema) > len(definitions) {
		return nil, undefinedKey()
	}
	def, err := s.index(t.Def.Key, index, false)
	if err != nil {
		return nil, err
	}
	if err := t.checkRedefined(def.Key); err != nil {
		return nil, err
	}
	for _, other := range t.Def.Indexes {
		s.projected += len(other.Projection.NonKey)
	}
	return &def, s.checkProjected()
}

// checkRedefined errs if an attribute of a new key is one of another key, of another type.
func (t *tableState) checkRedefined(key table.KeySchema) error {
	keys := []table.KeySchema{t.Def.Key}
	for _, index := range t.Def.Indexes {
		keys = append(keys, index.Key)
	}
	for _, a := range keyAttributes(key) {
		for _, known := range keys {
			for _, b := range keyAttributes(known) {
				if a.Name == b.Name && a.Kind != b.Kind {
					return invalidParameters(
						"Attributes cannot be redefined. Please check that your attribute has the same type as "+
							"previously defined. Existing schema: %s New schema: %s", showSchema(known), showSchema(key))
				}
			}
		}
	}
	return nil
}

// showSchema returns a key as that message shows it.
func showSchema(key table.KeySchema) string {
	shown := []string{"SchemaElement: key{" + key.Hash.Name + ":" + key.Hash.Kind.String() + ":HASH}"}
	if key.Sort.Name != "" {
		shown = append(shown, "SchemaElement: key{"+key.Sort.Name+":"+key.Sort.Kind.String()+":RANGE}")
	}
	return "Schema:" + bracketed(shown)
}

// checkNewThroughput errs where the throughput of a new index does not fit the table's billing mode.
func checkNewThroughput(index secondaryIndex, billing string) error {
	p := index.ProvisionedThroughput
	switch {
	case p != nil && billing == onDemand:
		return invalidParameters("Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: %s "+
			"when BillingMode is PAY_PER_REQUEST", *index.IndexName)
	case p == nil && billing == provisioned:
		return bothUnits(*index.IndexName)
	case p == nil:
		return nil
	}
	return p.check()
}

// bothUnits is the answer to an index without throughput, of a table that is provisioned.
func bothUnits(index string) error {
	return invalidParameters("Both ReadCapacityUnits and WriteCapacityUnits must be specified for index: %s",
		index)
}

// checkThroughput errs where an index's new throughput does not fit the table's billing mode, or is the old
// one.
func (t *tableState) checkThroughput(u updateGlobalSecondaryIndexAction, billing string) error {
	name, p := *u.IndexName, u.ProvisionedThroughput
	if billing == onDemand {
		return invalidParameters("The only Updates for index: %s when TableThroughputMode is PAY_PER_REQUEST "+
			"can be to OnDemandThroughput, WarmThroughput", name)
	}
	if p == nil {
		return bothUnits(name)
	}
	if err := p.check(); err != nil {
		return err
	}
	if p.describe() == t.indexes[name].describe() {
		return willNotChange("the index "+name, "index "+name, p)
	}
	return nil
}

// checkAllUpdated errs unless all global indexes of a table that becomes provisioned get their throughput.
func (t *tableState) checkAllUpdated(updates []globalSecondaryIndexUpdate) error {
	var missing []string
	for _, index := range t.Def.Indexes {
		named := slices.ContainsFunc(updates, func(u globalSecondaryIndexUpdate) bool {
			return u.name() ==
				index.Name
		})
		if !index.Local && !named {
			missing = append(missing, index.Name)
		}
	}
	if missing != nil {
		return invalidParameters("ProvisionedThroughput must be specified for index: %s",
			strings.Join(missing, ","))
	}
	return nil
}

// updateIndexes makes changes of indexes that have been checked. They are done at once: created indexes have
// the items that were there before.
func (t *tableState) updateIndexes(r updateTableInput, created *table.IndexDef, now time.Time) {
	for _, u := range orNone(r.GlobalSecondaryIndexUpdates) {
		switch {
		case u.Create != nil:
			t.AddIndex(*created, now)
			if p := u.Create.ProvisionedThroughput; p != nil {
				t.indexes[created.Name] = *p
			}
		case u.Update != nil:
			t.indexes[u.name()] = *u.Update.ProvisionedThroughput
		default:
			t.DropIndex(u.name())
			delete(t.indexes, u.name())
		}
	}
	if r.GlobalSecondaryIndexUpdates != nil {
		t.define(orNone(r.AttributeDefinitions))
	}
}

// define makes the table's attribute definitions those of its keys, among them new ones.
func (t *tableState) define(news []attributeDefinition) {
	keys := keyAttributes(t.Def.Key)
	for _, index := range t.Def.Indexes {
		keys = append(keys, keyAttributes(index.Key)...)
	}
	var definitions []attributeDefinition
	for _, d := range slices.Concat(t.definitions, news) {
		named := func(name string) bool { return name == *d.AttributeName }
		if slices.ContainsFunc(keys, func(a table.Attribute) bool { return named(a.Name) }) &&
			!slices.ContainsFunc(definitions, func(d attributeDefinition) bool { return named(*d.AttributeName) }) {
			definitions = append(definitions, d)
		}
	}
	t.definitions = definitions
}
