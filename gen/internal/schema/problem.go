package schema

import (
	"github.com/sluice-go/sluice/gen/internal/problem"
	"github.com/sluice-go/sluice/gen/internal/rules"
)

type (
	// Pos is a place in a file.
	Pos = problem.Pos
	// Problem is one mistake.
	Problem = problem.Problem
	// Problems is a list of mistakes.
	Problems = problem.Problems //nolint:errname // mostly used as a list, not as an error
)

// Rule is a condition that every limits.yaml must meet.
type Rule = rules.Rule

// Rules returns every rule that Read checks, in the order in which a reader of limits.yaml meets them.
func Rules() []Rule { return rules.All() }

// RuleOutPath is the id of the rule about go.out. Read does not know the module: package gen checks that.
const RuleOutPath = rules.OutPath
