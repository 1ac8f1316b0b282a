package item

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Namespace is a part of a table that belongs to one owner. The hash keys of its items, in the table and in
// its indexes, begin with its name and a '#'. The zero value is the default namespace, whose hash keys begin
// with a capital letter.
type Namespace string

// namespaceName matches names of namespaces, as limits.yaml has names of owners.
var namespaceName = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,63}$`)

// ParseNamespace returns the namespace of that name. The error says what a name is like.
func ParseNamespace(name string) (Namespace, error) {
	if !namespaceName.MatchString(name) {
		return "", fmt.Errorf("namespace %q: want up to 64 of a-z, 0-9, '.', '_', '/' and '-', the first of them "+
			"a letter or a digit", name)
	}
	return Namespace(name), nil
}

// Hash returns the hash key in n that key is in the default namespace.
func (n Namespace) Hash(key string) string {
	if n == "" {
		return key
	}
	return string(n) + "#" + key
}

// In returns values with the hash keys among them moved from the default namespace to n. values are an item,
// a key, or the values of an expression, and stay as they are.
func (n Namespace) In(values Item) Item {
	if n == "" {
		return values
	}
	moved := maps.Clone(values)
	for name, value := range values {
		if s, ok := value.(*types.AttributeValueMemberS); ok && isHash(s.Value) {
			moved[name] = &types.AttributeValueMemberS{Value: n.Hash(s.Value)}
		}
	}
	return moved
}

// isHash reports whether text is a hash key of the default namespace. No other text of an item begins like
// one, since '#' is in no name of a kind or a resource.
func isHash(text string) bool {
	prefixes := [...]string{
		EntityPrefix, SystemKey, kindPrefix, plansKey, catalogKey, bucketList, overrideList, parentKey,
	}
	return slices.ContainsFunc(prefixes[:], func(prefix string) bool { return strings.HasPrefix(text, prefix) })
}

// SplitHash splits a stored hash key into its namespace and the key in the default namespace.
func SplitHash(stored string) (n Namespace, key string) {
	name, key, cut := strings.Cut(stored, "#")
	if isHash(stored) || !cut || !namespaceName.MatchString(name) {
		return "", stored
	}
	return Namespace(name), key
}

// NamespaceOf returns the namespace of a stored item.
func NamespaceOf(stored Item) Namespace {
	n, _ := SplitHash(text(stored[PK]))
	return n
}

// NameOf returns the key of a stored item as errors name it, with its namespace.
func NameOf(stored Item) string { return Key{text(stored[PK]), text(stored[SK])}.String() }
