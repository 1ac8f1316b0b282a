// Package value is DynamoDB's attribute values: ten types, exact numbers, their sizes, their order, and their
// JSON.
package value

// Kind is the type of a value.
type Kind uint8

// The ten types.
const (
	KindS Kind = iota + 1
	KindN
	KindB
	KindBool
	KindNull
	KindSS
	KindNS
	KindBS
	KindL
	KindM
)

// String returns the type's descriptor, as it stands on the wire: S, N, BOOL, ...
func (k Kind) String() string {
	return [...]string{"?", "S", "N", "B", "BOOL", "NULL", "SS", "NS", "BS", "L", "M"}[k]
}

// Value is one of [String], [Number], [Binary], [Bool], [Null], [Strings], [Numbers], [Binaries], [List] and
// [Map]. Values are immutable: who changes a part makes a new whole, and so old and new images share what did
// not change.
type Value interface {
	Kind() Kind
}

type (
	// String is an S.
	String string
	// Binary is a B, its bytes as a string so that it compares and does not change.
	Binary string
	// Bool is a BOOL.
	Bool bool
	// Null is a NULL.
	Null struct{}
	// Strings is an SS: sorted, without duplicates, not empty.
	Strings []string
	// Numbers is an NS: sorted, without duplicates, not empty.
	Numbers []Number
	// Binaries is a BS: sorted, without duplicates, not empty.
	Binaries []string
	// List is an L.
	List []Value
	// Map is an M, and an item.
	Map map[string]Value
)

// Kind returns KindS.
func (String) Kind() Kind { return KindS }

// Kind returns KindN.
func (Number) Kind() Kind { return KindN }

// Kind returns KindB.
func (Binary) Kind() Kind { return KindB }

// Kind returns KindBool.
func (Bool) Kind() Kind { return KindBool }

// Kind returns KindNull.
func (Null) Kind() Kind { return KindNull }

// Kind returns KindSS.
func (Strings) Kind() Kind { return KindSS }

// Kind returns KindNS.
func (Numbers) Kind() Kind { return KindNS }

// Kind returns KindBS.
func (Binaries) Kind() Kind { return KindBS }

// Kind returns KindL.
func (List) Kind() Kind { return KindL }

// Kind returns KindM.
func (Map) Kind() Kind { return KindM }
