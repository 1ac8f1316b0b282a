package gen

import (
	"fmt"
	"path"

	"github.com/sluice-go/sluice/gen/internal/breaking"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// BreakingChange is one thing that a change of a limits.yaml breaks.
type BreakingChange = breaking.Finding

// BreakingRule finds one kind of breaking change.
type BreakingRule = breaking.Rule

// BreakingRules returns every rule, in the order in which they are listed.
func BreakingRules() []BreakingRule { return breaking.Rules() }

// OldSchema is the limits.yaml that a new one is compared with.
type OldSchema struct {
	Name   string // its name in errors
	Folder string // its folder, relative to that of the new one and slash-separated; "" for the same
	Text   []byte
}

// Breaking returns the changes by which the limits.yaml at file breaks an old one, sorted by place. Changes
// that the file excepts are included, and have Ignored set.
func Breaking(file string, old OldSchema) ([]BreakingChange, error) {
	after, err := sound(file)
	if err != nil {
		return nil, err
	}
	before, problems := schema.Read(old.Name, old.Text)
	if len(problems) > 0 {
		return nil, fmt.Errorf("what to compare with, %s, does not pass the rules of this sluice; compare with a "+
			"version that does, or with a copy that is fixed as %s was:\n%w", old.Name, file, problems)
	}
	if old.Folder != "" {
		before.Out = path.Join(old.Folder, before.Out)
	}
	return breaking.Compare(before, after), nil
}
