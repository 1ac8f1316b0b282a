package value

import (
	"encoding/base64"
	"errors"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// Wire is an attribute value as JSON has it, for encoding/json. A member that is null was not given.
type Wire struct {
	S    *string           `json:"S"`
	N    *string           `json:"N"`
	B    *string           `json:"B"` // base64
	BOOL *bool             `json:"BOOL"`
	NULL *bool             `json:"NULL"`
	SS   *[]*string        `json:"SS"`
	NS   *[]*string        `json:"NS"`
	BS   *[]*string        `json:"BS"`
	L    *[]*Wire          `json:"L"`
	M    *map[string]*Wire `json:"M"`
}

// MaxName is the most bytes that the name of an attribute may have.
const MaxName = 1<<16 - 1

// Decode returns the value of w. Its errors are of type *exception.Error, in AWS's wording, and whole: they
// are what a client sees where w is an attribute of an item or key.
func Decode(w *Wire) (Value, error) { return decode(w, MaxDepth) }

// DecodeMap returns the item or key of w; nil gives nil. Its errors are as Decode's.
func DecodeMap(w map[string]*Wire) (Map, error) {
	if w == nil {
		return nil, nil
	}
	return decodeMap(w, MaxDepth)
}

// DecodeValues returns the ExpressionAttributeValues of w, their names unchecked; nil gives nil. Its errors
// name the value: they are what a client sees.
func DecodeValues(w map[string]*Wire) (Map, error) {
	if w == nil {
		return nil, nil
	}
	return decodeAll(w, func(name string, w *Wire) (Value, error) {
		v, err := Decode(w)
		if e, ok := errors.AsType[*exception.Error](err); ok && e.Code == exception.Validation {
			err = exception.Invalid("ExpressionAttributeValues contains invalid value: %s for key %s", e.Message, name)
		}
		return v, err
	})
}

// decode returns the value of w, which may have that many levels of lists and maps.
func decode(w *Wire, depth int) (Value, error) {
	if w == nil {
		return nil, errNull()
	}
	// All that was given is checked, in the service's order, before it counts that only one type may be.
	var v Value
	var err error
	types := 0
	given := func(decoded Value, e error) {
		types++
		v = decoded
		if err == nil {
			err = e
		}
	}
	if w.S != nil {
		given(String(*w.S), nil)
	}
	if w.B != nil {
		s, e := decodeBinary(*w.B)
		given(Binary(s), e)
	}
	if w.BOOL != nil {
		given(Bool(*w.BOOL), nil)
	}
	if w.SS != nil {
		given(decodeStrings(*w.SS))
	}
	if w.N != nil {
		n, e := ParseNumber(*w.N)
		given(n, e)
	}
	if w.NS != nil {
		given(decodeNumbers(*w.NS))
	}
	if w.BS != nil {
		given(decodeBinaries(*w.BS))
	}
	if w.M != nil {
		m, e := decodeMap(*w.M, depth)
		given(m, e)
	}
	if w.L != nil {
		given(decodeList(*w.L, depth))
	}
	if w.NULL != nil {
		given(decodeNull(*w.NULL))
	}
	switch {
	case err != nil:
		return nil, err
	case types == 0:
		return nil, exception.Invalid("Supplied AttributeValue is empty, must contain exactly one of the " +
			"supported datatypes")
	case types > 1:
		return nil, exception.Invalid(
			"Supplied AttributeValue has more than one datatypes set, must contain exactly one of the supported " +
				"datatypes")
	}
	return v, nil
}

func decodeNull(isNull bool) (Value, error) {
	if !isNull {
		return nil, errParameter("Null attribute value types must have the value of true")
	}
	return Null{}, nil
}

// decodeBinary refuses the line breaks, too, that encoding/base64 would skip.
func decodeBinary(text string) (string, error) {
	if len(text)%4 != 0 {
		return "", exception.New(exception.Serialization,
			"Base64 encoded length is expected a multiple of 4 bytes but found: %d", len(text))
	}
	decoded, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		return "", exception.New(exception.Serialization, "Invalid last non-pad Base64 character dectected")
	}
	return string(decoded), nil
}

func decodeList(w []*Wire, depth int) (Value, error) {
	if depth == 0 {
		return nil, errDepth()
	}
	list := make(List, len(w))
	for i, element := range w {
		v, err := decode(element, depth-1)
		if err != nil {
			return nil, err
		}
		list[i] = v
	}
	return list, nil
}

func decodeMap(w map[string]*Wire, depth int) (Map, error) {
	if depth == 0 {
		return nil, errDepth()
	}
	return decodeAll(w, func(name string, w *Wire) (Value, error) { return decodeAttribute(name, w, depth-1) })
}

// decodeAll returns, of several errors, the one of the first name: a map has no order, and the same request
// gets the same answer.
func decodeAll(w map[string]*Wire, decodeOne func(name string, w *Wire) (Value, error)) (Map, error) {
	var wrong string
	var wrongErr error
	m := make(Map, len(w))
	for name, element := range w {
		v, err := decodeOne(name, element)
		if err != nil && (wrongErr == nil || name < wrong) {
			wrong, wrongErr = name, err
		}
		m[name] = v
	}
	if wrongErr != nil {
		return nil, wrongErr
	}
	return m, nil
}

func decodeAttribute(name string, w *Wire, depth int) (Value, error) {
	switch {
	case name == "":
		return nil, exception.Invalid("Empty attribute name")
	case len(name) > MaxName:
		return nil, exception.Invalid("Attribute name is too large, must be less than %d bytes", MaxName+1)
	case w == nil:
		return nil, exception.Invalid("The supplied Item contains a null AttributeValue: %s is null", name)
	}
	return decode(w, depth)
}

func errParameter(format string, args ...any) error {
	return exception.Invalid("One or more parameter values were invalid: "+format, args...)
}

func errNull() error {
	return exception.Invalid("The supplied Item contains a null AttributeValue")
}

func errDepth() error {
	return exception.Invalid("Nesting Levels have exceeded supported limits: " +
		"Attributes in the item have nested levels beyond supported limit")
}
