package gen

import (
	"fmt"

	"github.com/sluice-go/sluice/gen/internal/breaking"
	"github.com/sluice-go/sluice/gen/internal/schema"
)

// BreakingChange is something that a change of a limits.yaml breaks.
type BreakingChange = breaking.Finding

// BreakingRule finds one way in which a change breaks.
type BreakingRule = breaking.Rule

// BreakingRules returns every rule, in the order in which they are listed.
func BreakingRules() []BreakingRule { return breaking.Rules() }

// Breaking returns what the limits.yaml at path breaks of an old one, which errors call by name: sorted by place, and with
// those that the file takes as they are (Ignored).
func Breaking(path, name string, old []byte) ([]BreakingChange, error) {
	after, problems, err := read(path)
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		problems.Sort()
		return nil, problems
	}
	before, problems := schema.Read(name, old)
	if len(problems) > 0 {
		return nil, fmt.Errorf("what to compare with, %s, does not pass the rules of this sluice; compare with a version that does, or with "+
			"a copy that is mended as %s was:\n%w", name, path, problems)
	}
	return breaking.Compare(before, after), nil
}
