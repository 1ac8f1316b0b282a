package engine

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// constraints collects which parameters break the rules that hold for each of them alone. The service names
// all that it finds in one exception.
type constraints struct{ broken []string }

// err returns the exception, or nil if no rule was broken.
func (c *constraints) err() error {
	switch n := len(c.broken); n {
	case 0:
		return nil
	case 1:
		return exception.Invalid("1 validation error detected: %s", c.broken[0])
	default:
		return exception.Invalid("%d validation errors detected: %s", n, strings.Join(c.broken, "; "))
	}
}

// maxBroken is how many broken rules the service names.
const maxBroken = 10

// breaks notes that the parameter at that path, whose value is shown, breaks a rule.
func (c *constraints) breaks(at, shown, rule string) {
	if len(c.broken) < maxBroken {
		c.broken = append(c.broken, fmt.Sprintf("Value %s at '%s' failed to satisfy constraint: %s", shown, at,
			rule))
	}
}

// required holds that a parameter is there.
func (c *constraints) required(at string, there bool) {
	if !there {
		c.breaks(at, "null", "Member must not be null")
	}
}

// enum holds that a parameter, if it is there, is one of a set. The set is in the service's order.
func (c *constraints) enum(at string, v *string, set ...string) {
	if v != nil && !slices.Contains(set, *v) {
		c.breaks(at, quote(*v), "Member must satisfy enum value set: ["+strings.Join(set, ", ")+"]")
	}
}

// between holds that a number, if it is there, is within bounds. most of 0 is no bound.
func (c *constraints) between(at string, v *int, least, most int) {
	if v == nil {
		return
	}
	shown := quote(fmt.Sprint(*v))
	if *v < least {
		c.breaks(at, shown, fmt.Sprint("Member must have value greater than or equal to ", least))
	}
	if most > 0 && *v > most {
		c.breaks(at, shown, fmt.Sprint("Member must have value less than or equal to ", most))
	}
}

// length holds that something is of a length within bounds. shown is how the message shows its value. most of
// 0 is no bound.
func (c *constraints) length(at, shown string, n, least, most int) {
	if n < least {
		c.breaks(at, quote(shown), fmt.Sprint("Member must have length greater than or equal to ", least))
	}
	if most > 0 && n > most {
		c.breaks(at, quote(shown), fmt.Sprint("Member must have length less than or equal to ", most))
	}
}

// Lengths of names of tables and indexes.
const (
	minName = 3
	maxName = 255
)

// table holds that the parameter TableName is there, and is the name of a table or an ARN.
func (c *constraints) table(name *string) {
	c.required("tableName", name != nil)
	if name != nil {
		c.name("tableName", tableName(*name))
	}
}

// name holds that a name, which is there, is one that a table or an index may have.
func (c *constraints) name(at, name string) {
	if !validName(name) {
		c.breaks(at, quote(name), "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+")
	}
	c.length(at, name, len(name), minName, maxName)
}

// validName reports whether a name consists of what names consist of.
func validName(name string) bool {
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '.', r == '-':
		default:
			return false
		}
	}
	return name != ""
}

// consumed holds that ReturnConsumedCapacity is one of its values.
func (c *constraints) consumed(v *string) {
	c.enum("returnConsumedCapacity", v, "INDEXES", "TOTAL", "NONE")
}

func quote(s string) string { return "'" + s + "'" }
