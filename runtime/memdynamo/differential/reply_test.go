package differential_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
)

// reply is what one request came back with, so that equal replies of two engines are equal.
type reply struct {
	Code, Message string         // of an exception
	Body          map[string]any // its other fields, or the output: JSON, sets sorted
}

// reply takes down the last exchange, whose error for the SDK's user is err. It errs where there was none, or
// where the user learns another thing than what went over the wire.
func (s *side) reply(err error) (reply, error) {
	var r reply
	api, refused := errors.AsType[smithy.APIError](err)
	if err != nil && !refused {
		return r, fmt.Errorf("no reply: %w", err)
	}
	text := string(s.wire.last.reply)
	for drawn, its := range s.names {
		text = strings.ReplaceAll(text, its, drawn)
	}
	if err := json.Unmarshal([]byte(text), &r.Body); err != nil {
		return r, fmt.Errorf("reply %q: %w", text, err)
	}
	if refused {
		_, code, _ := strings.Cut(fmt.Sprint(r.Body["__type"]), "#")
		if code != api.ErrorCode() {
			return r, fmt.Errorf("reply %q is to the SDK: %w", text, err)
		}
		r.Code, r.Message = code, api.ErrorMessage()
		for drawn, its := range s.names {
			r.Message = strings.ReplaceAll(r.Message, its, drawn)
		}
		r.Message = sortNames(r.Message)
		maps.DeleteFunc(r.Body, func(name string, _ any) bool {
			return name == "__type" ||
				strings.EqualFold(name, "message")
		})
	}
	sortSets(r.Body)
	return r, nil
}

// nameList is where a message lists names, in no order: those that are unused, or that an index does not
// have.
var nameList = regexp.MustCompile(`(keys: \{|does not project \[)([^]}]*)`)

// sortNames sorts the names in a message.
func sortNames(message string) string {
	return nameList.ReplaceAllStringFunc(message, func(list string) string {
		parts := nameList.FindStringSubmatch(list)
		names := strings.Split(parts[2], ", ")
		slices.Sort(names)
		return parts[1] + strings.Join(names, ", ")
	})
}

// sortSets sorts the sets in decoded JSON: their order means nothing.
func sortSets(v any) {
	switch v := v.(type) {
	case []any:
		for _, part := range v {
			sortSets(part)
		}
	case map[string]any:
		for name, part := range v {
			if members, ok := part.([]any); ok && len(v) == 1 && (name == "SS" || name == "NS" || name == "BS") {
				sortAny(members)
				continue
			}
			sortSets(part)
		}
	}
}

// sortAny sorts a list of decoded JSON by its text.
func sortAny(list []any) {
	slices.SortFunc(list, func(a, b any) int { return cmp.Compare(textOf(a), textOf(b)) })
}

// textOf is decoded JSON as text, names in order.
func textOf(v any) string {
	var b strings.Builder
	to := json.NewEncoder(&b)
	to.SetEscapeHTML(false)
	if err := to.Encode(v); err != nil {
		return err.Error()
	}
	return strings.TrimSuffix(b.String(), "\n")
}
