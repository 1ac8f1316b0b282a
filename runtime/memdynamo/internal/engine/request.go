package engine

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/expr"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// decode reads a request. It errs, in the service's words, where JSON has other types than the request's
// members.
func decode[T any](input []byte) (request T, err error) {
	err = json.Unmarshal(input, &request)
	if err == nil {
		if trimmed := bytes.TrimLeft(input, " \t\r\n"); trimmed[0] != '{' {
			// null, which encoding/json takes for no request
			return request, exception.New(exception.Serialization, "")
		}
		return request, nil
	}
	if mistyped, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && mistyped.Field != "" {
		return request, exception.New(exception.Serialization, "%s", mistypedText(mistyped, input))
	}
	return request, exception.New(exception.Serialization, "")
}

// mistypedText says, as the service does, that a JSON value cannot be what the request wants at its place.
func mistypedText(e *json.UnmarshalTypeError, input []byte) string {
	found, _, _ := strings.Cut(e.Value, " ") // "number 1.5"
	wanted := e.Type
	switch {
	case found == "object":
		return "Start of structure or map found where not expected"
	case found == "array":
		switch wanted.Kind() {
		case reflect.Map:
			return "Unrecognized collection type java.util.Map<java.lang.String, " + className(wanted.Elem()) + ">"
		default:
			return "Unrecognized collection type class " + className(wanted)
		}
	case wanted.Kind() == reflect.Struct, wanted.Kind() == reflect.Map, wanted.Kind() == reflect.Slice:
		return "Unexpected field type"
	case found == "string" && wanted.Kind() == reflect.Bool:
		return "Unexpected token received from parser"
	}
	read := input[:min(e.Offset, int64(len(input)))]
	token := "STRING_VALUE"
	switch {
	case found == "bool" && bytes.HasSuffix(read, []byte("true")):
		token = "TRUE_VALUE"
	case found == "bool":
		token = "FALSE_VALUE"
	case found == "number" && bytes.ContainsAny(read[len(bytes.TrimRight(read, "+-0123456789.eE")):], ".eE"):
		token = "DECIMAL_VALUE"
	case found == "number":
		token = "NUMBER_VALUE"
	}
	class := className(wanted)
	return token + " cannot be converted to " + class[strings.LastIndexByte(class, '.')+1:]
}

// className is what the service calls a type of ours.
func className(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return className(t.Elem())
	case reflect.String:
		return "java.lang.String"
	case reflect.Bool:
		return "java.lang.Boolean"
	case reflect.Int64:
		return "java.lang.Long"
	case reflect.Int, reflect.Int32:
		return "java.lang.Integer"
	case reflect.Slice:
		return "java.util.List<" + className(t.Elem()) + ">"
	}
	name := []rune(t.Name())
	if t == reflect.TypeFor[value.Wire]() {
		name = []rune("AttributeValue")
	}
	if len(name) > 0 {
		name[0] = unicode.ToUpper(name[0])
	}
	return "com.amazonaws.dynamodb.v20120810." + string(name)
}

// expressionAttributes are what the expressions of a request may refer to.
type expressionAttributes struct {
	ExpressionAttributeNames  map[string]string
	ExpressionAttributeValues map[string]*value.Wire
}

// expression is one of a request's parameters that may hold an expression.
type expression struct {
	parameter string
	text      *string // nil: not given
}

// check errs if names or values were given, and none of the request's expressions, which are those, could use
// them.
func (a expressionAttributes) check(expressions ...expression) error {
	given := slices.ContainsFunc(expressions, func(e expression) bool { return e.text != nil })
	if a.ExpressionAttributeNames != nil && !given {
		return exception.Invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	var users []string // of values
	used := false
	for _, e := range expressions {
		if e.parameter != expr.ProjectionExpression {
			users = append(users, e.parameter)
			used = used || e.text != nil
		}
	}
	if a.ExpressionAttributeValues != nil && len(users) > 0 && !used {
		verb := " is null"
		if len(users) > 1 {
			verb = " are null"
		}
		return exception.Invalid("ExpressionAttributeValues can only be specified when using expressions: %s",
			strings.Join(users, " and ")+verb)
	}
	return nil
}

// maxValues is how many bytes the names and values of ExpressionAttributeValues may have together.
const maxValues = 2 << 20

// scope returns the scope of the request's expressions, of which those are all that it may have. It errs as
// check does.
func (a expressionAttributes) scope(expressions ...expression) (*expr.Scope, error) {
	if err := a.check(expressions...); err != nil {
		return nil, err
	}
	values, err := value.DecodeValues(a.ExpressionAttributeValues)
	if err != nil {
		return nil, err
	}
	if value.ItemSize(values) > maxValues {
		return nil, exception.Invalid("ExpressionAttributeValues exceeds max size")
	}
	return expr.NewScope(a.ExpressionAttributeNames, values)
}

// legacy are the parameters that expressions have replaced. This engine does not know what they do.
type legacy struct {
	AttributeUpdates, AttributesToGet, ConditionalOperator, Expected json.RawMessage
	KeyConditions, QueryFilter, ScanFilter                           json.RawMessage
}

// refuse errs if one of them was given.
func (l legacy) refuse() error {
	for _, p := range [...]struct {
		name    string
		given   json.RawMessage
		instead string
	}{
		{"AttributeUpdates", l.AttributeUpdates, expr.UpdateExpression},
		{"AttributesToGet", l.AttributesToGet, expr.ProjectionExpression},
		{"Expected", l.Expected, expr.ConditionExpression},
		{"KeyConditions", l.KeyConditions, expr.KeyConditionExpression},
		{"QueryFilter", l.QueryFilter, expr.FilterExpression},
		{"ScanFilter", l.ScanFilter, expr.FilterExpression},
		{"ConditionalOperator", l.ConditionalOperator, "AND or OR in an expression"},
	} {
		if p.given != nil && string(p.given) != "null" {
			return exception.Invalid("The legacy parameter %s is not supported by this engine: use %s", p.name,
				p.instead)
		}
	}
	return nil
}
