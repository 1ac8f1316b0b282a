package gen

import (
	"fmt"
	"path"

	"github.com/sluice-go/sluice/gen/internal/breaking"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// BreakingChange is something that a change of a limits.yaml breaks.
type BreakingChange = breaking.Finding

// BreakingRule finds one way in which a change breaks.
type BreakingRule = breaking.Rule

// BreakingRules returns every rule, in the order in which they are listed.
func BreakingRules() []BreakingRule { return breaking.Rules() }

// OldSchema is a limits.yaml that another is compared with.
type OldSchema struct {
	Name   string // what errors call it
	Folder string // where it was, seen from the folder of the other: slash-separated; "" for the same
	Text   []byte
}

// Breaking returns what the limits.yaml at file breaks of an old one: sorted by place, and with those that the file takes as
// they are (Ignored).
func Breaking(file string, old OldSchema) ([]BreakingChange, error) {
	after, err := sound(file)
	if err != nil {
		return nil, err
	}
	before, problems := schema.Read(old.Name, old.Text)
	if len(problems) > 0 {
		return nil, fmt.Errorf("what to compare with, %s, does not pass the rules of this sluice; compare with a version that does, or with "+
			"a copy that is mended as %s was:\n%w", old.Name, file, problems)
	}
	if old.Folder != "" {
		before.Out = path.Join(old.Folder, before.Out)
	}
	return breaking.Compare(before, after), nil
}
