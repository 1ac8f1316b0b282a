package expr

import (
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// maxKey is the most bytes that a key of ExpressionAttributeNames or ExpressionAttributeValues may have.
const maxKey = 255

// Scope is what the expressions of one request may refer to, and what they did refer to. It serves one
// goroutine.
type Scope struct {
	names  bindings[string]
	values bindings[value.Value]
}

// NewScope returns the scope of ExpressionAttributeNames and ExpressionAttributeValues. Either may be nil:
// not given. It errs where a key's syntax is wrong.
func NewScope(names map[string]string, values value.Map) (*Scope, error) {
	s := &Scope{}
	if names != nil {
		s.names = bind("ExpressionAttributeNames", names)
		if err := s.names.check('#'); err != nil {
			return nil, err
		}
		for _, b := range s.names.list {
			if b.value == "" {
				return nil, exception.Invalid("ExpressionAttributeNames contains invalid value: "+
					"Empty attribute name for key %s", b.key)
			}
			if len(b.value) > value.MaxName {
				return nil, exception.Invalid("ExpressionAttributeNames contains invalid value: "+
					"Attribute name is too large, must be less than %d bytes for key %s", value.MaxName+1, b.key)
			}
		}
	}
	if values != nil {
		s.values = bind("ExpressionAttributeValues", values)
		if err := s.values.check(':'); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Unused errs if a name or value was given that no expression refers to. It is asked after all were parsed.
func (s *Scope) Unused() error {
	if err := s.names.unused(); err != nil {
		return err
	}
	return s.values.unused()
}

// bindings is one of the two parameters that give placeholders a meaning, sorted by key.
type bindings[T any] struct {
	parameter string
	list      []binding[T]
}

type binding[T any] struct {
	key   string
	value T
	used  bool
}

func bind[M ~map[string]T, T any](parameter string, m M) bindings[T] {
	list := make([]binding[T], 0, len(m))
	for key, v := range m {
		list = append(list, binding[T]{key: key, value: v})
	}
	slices.SortFunc(list, func(a, b binding[T]) int { return strings.Compare(a.key, b.key) })
	return bindings[T]{parameter, list}
}

// check errs if there are no bindings, or where a key is not sigil and a word.
func (b bindings[T]) check(sigil byte) error {
	if len(b.list) == 0 {
		return exception.Invalid("%s must not be empty", b.parameter)
	}
	for i := range b.list {
		key := b.list[i].key
		wrong := ""
		switch {
		case key == "":
			wrong = "The expression attribute map contains an empty key;"
		case len(key) > maxKey && sigil == ':':
			wrong = "The expression attribute map contains a key that is too long;"
		case len(key) > maxKey:
			wrong = "The expression attribute map contains a key that is too long; size of key: " +
				strconv.Itoa(len(key))
		case len(key) < 2, key[0] != sigil, wordEnd(key, 1) != len(key):
			wrong = `Syntax error; key: "` + key + `"`
		}
		if wrong != "" {
			return exception.Invalid("%s contains invalid key: %s", b.parameter, wrong)
		}
	}
	return nil
}

// use returns what key stands for, and remembers that it was asked.
func (b bindings[T]) use(key string) (v T, ok bool) {
	i, ok := slices.BinarySearchFunc(b.list, key, func(b binding[T], key string) int {
		return strings.Compare(b.key, key)
	})
	if !ok {
		return v, false
	}
	b.list[i].used = true
	return b.list[i].value, true
}

func (b bindings[T]) unused() error {
	var keys []string
	for i := range b.list {
		if !b.list[i].used {
			keys = append(keys, b.list[i].key)
		}
	}
	if keys == nil {
		return nil
	}
	return exception.Invalid("Value provided in %s unused in expressions: keys: {%s}", b.parameter,
		strings.Join(keys, ", "))
}
