package model

// Attribute is an attribute of a bucket that belongs to no limit. Its value either follows from the bucket's
// key (it is Text, then the entity's id as stored if Entity is set), or is in Field. The table of the
// runtime, in runtime/internal/item, has the same names; each generated package's test compares the two.
type Attribute struct {
	Name   string
	Text   string
	Entity bool
	Field  *Field
}

// Field is the field of a generated bucket, and of bucket.Image, that holds an attribute of its own.
type Field struct {
	Name    string
	Write   string // field of codec.Write that has the value to store
	Number  bool   // int64, not string
	ID      bool   // an entity as stored, or ""
	Comment string // in the generated bucket

	// Bytes of the value by DynamoDB's rules: of a bucket as created, and of the longest. A number takes one
	// byte, and one for each pair of digits. Those of an ID are as many as it has.
	New, Most int
}

// Attributes returns the attributes of r's buckets besides those of its limits, in the order of
// docs/design.md, "Table". All code that writes or measures a bucket iterates over them.
func (r *Resource) Attributes() []Attribute {
	all := []Attribute{
		{Name: "PK", Text: EntityPrefix, Entity: true},
		{Name: "SK", Text: r.SortKey},
		{Name: "GSI2PK", Text: r.IndexKey},
		{Name: "GSI2SK", Text: "BUCKET#", Entity: true},
		{Name: EntityID, Entity: true},
		{Name: "resource", Text: r.Name},
		{Name: Refilled, Field: &Field{
			Name: "Refilled", Write: "RF", Number: true, Comment: "rf, ms: refill is claimed up to here",
			New: 1 + 13/2 + 1, Most: 1 + 13/2 + 1, // milliseconds since 1970: 13 digits until the year 2286
		}},
		{Name: "cv", Field: &Field{
			Name: "Version", Write: "CV", Number: true, Comment: "cv: version of the numbers",
			New:  1 + 3,  // revision, of five digits, in front of 14 zeros
			Most: 1 + 10, // 19 digits: with the versions of overrides
		}},
		{Name: "op", Field: &Field{
			Name: "Op", Write: "Op", Comment: "id of the last write",
			New: 12, Most: 12, // 72 bits in base64
		}},
		{Name: "ttl", Field: &Field{
			Name: "TTL", Write: "TTL", Number: true, Comment: "s",
			New:  1 + 5, // seconds since 1970: 10 digits
			Most: 1 + 6, // 12 digits: the year 9999
		}},
	}
	if r.OnPlans {
		all = append(all, Attribute{Name: "po", Field: &Field{
			Name: "PlanOf", Write: "PlanOf", ID: true,
			Comment: "po: the entity whose plan it has, as stored; \"\" if that never was on one",
		}})
	}
	return all
}

// Names that a reader of an item or of a key uses too.
const (
	EntityPrefix = "ENTITY#" // begins PK
	EntityID     = "entity_id"
	Refilled     = "rf"
)
