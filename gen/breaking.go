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

// Breaking returns what the limits.yaml at path breaks of what old says, which name calls by; sorted by place, those
// included that the file takes as they are (Ignored). A nil old is that of a file that was not there: all is new then, and
// nothing breaks. The error is a Problems if the file at path is at fault.
func Breaking(path, name string, old []byte) ([]BreakingChange, error) {
	after, problems, err := read(path)
	switch {
	case err != nil:
		return nil, err
	case len(problems) > 0:
		problems.Sort()
		return nil, problems
	case old == nil:
		return nil, nil
	}
	before, problems := schema.Read(name, old)
	if len(problems) > 0 {
		return nil, fmt.Errorf("what to compare with, %s, does not pass the rules of this sluice; compare with a version that does, or with "+
			"a copy that is mended as %s was:\n%w", name, path, problems)
	}
	return breaking.Compare(before, after), nil
}
