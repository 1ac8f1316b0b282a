package store

import (
	"fmt"
	"reflect"
	"strings"
)

// Format returns a generated cost or set of limits as text, such as GPT4Cost{RPM:1 TPM:9999} and
// GPT4Limits{RPM:{Capacity:600} TPD:500}. It leaves out limits that inherit, and the zero fields of a
// runtime.Rate. The String methods of generated types call it.
func Format(v any) string {
	s := reflect.ValueOf(v)
	return s.Type().Name() + fields(s, true)
}

// fields returns the exported fields of a struct: all of them, or those that are not zero.
func fields(s reflect.Value, all bool) string {
	var set []string
	for i := range s.NumField() {
		f, v := s.Type().Field(i), s.Field(i)
		switch {
		case !f.IsExported(), v.IsZero() && (!all || v.Kind() == reflect.Pointer):
		case v.Kind() == reflect.Pointer && v.Elem().Kind() == reflect.Struct:
			set = append(set, f.Name+":"+fields(v.Elem(), false))
		default:
			set = append(set, fmt.Sprintf("%s:%v", f.Name, reflect.Indirect(v)))
		}
	}
	return "{" + strings.Join(set, " ") + "}"
}
