package style

import (
	"fmt"
	"go/ast"
	"go/token"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// dynamoNames are the exported names of runtime/dynamo: what users of the store call, and nothing else.
var dynamoNames = []string{
	"New", "Store", "API", "Option", "ImageCache", "DefaultImageCache", "Attempts", "DefaultAttempts",
	"InFlight", "DefaultInFlight", "Namespace",
}

// privateWords are words of the left columns of the dictionary that no identifier may contain, with what is
// used instead. Words that Go or its tests use in their own sense are left out, such as done, end, found,
// line, look, memory, place, retry, skip, sort and want.
var privateWords = map[string]string{
	"aboard":    "included",
	"awaited":   "hasWaiters",
	"beyond":    "exceedsQuota",
	"company":   "arrivals",
	"contested": "isContended",
	"disembark": "detachLazy",
	"doubtful":  "shouldRead",
	"embark":    "attachLazy",
	"envelope":  "reusable input",
	"fence":     "guardDebt",
	"flight":    "pipeline",
	"fly":       "send",
	"forget":    "invalidate",
	"gather":    "collect",
	"giving":    "refundRequest",
	"gone":      "abandoned",
	"joined":    "newOpForJoiners",
	"lack":      "missing",
	"lacks":     "missing",
	"lane":      "queue",
	"lanes":     "queues",
	"learn":     "update",
	"leg":       "target",
	"legs":      "targets",
	"levels":    "balances",
	"lone":      "one allocation behind a named constructor",
	"mend":      "repair",
	"mended":    "repair",
	"mends":     "repair",
	"met":       "lastErr",
	"owe":       "deferSettle",
	"owed":      "deferred",
	"owes":      "deferSettle",
	"party":     "included",
	"patience":  "retrier",
	"prospect":  "futureBucket",
	"quit":      "giveUp",
	"raced":     "noteConflict",
	"recall":    "lookup",
	"rides":     "isLazy",
	"rival":     "contendedUntil",
	"rivals":    "contendedUntil",
	"room":      "headroom",
	"scratch":   "vectorPool",
	"share":     "portion (of a request) or quota (of a region)",
	"shares":    "quota",
	"spared":    "graceRead",
	"stray":     "unknownLimits",
	"strays":    "unknownLimits",
	"surveyed":  "checkedLegacy",
	"told":      "report, answered",
	"undo":      "reverseCharge",
	"unseen":    "needsRead",
	"verdict":   "decision",
	"whoever":   "the role",
	"withheld":  "exceedsQuota",
}

// wholeNames are private as a whole identifier, but not as a part of one.
var wholeNames = map[string]string{
	"Level":  "Balance",
	"charge": "batch",
}

// allowedNames contain a private word in another sense.
var allowedNames = map[string]string{
	"floorShare": "the dictionary's word for the part of a quota that a region keeps",
}

// privateProse matches private words that have no other sense in a comment.
var privateProse = regexp.MustCompile(`(?i)\b(aboard|(dis)?embarks?(ed)?|mend(s|ed|ing)?|patience|whoever|` +
	`told of|withheld|surveyed|strays?|verdicts?|lacks)\b`)

// names finds declared identifiers that contain a private word.
func names(f *file) []Finding {
	var found []Finding
	declared(f.ast, func(id *ast.Ident) {
		if w, instead := private(id.Name); w != "" {
			text := fmt.Sprintf("%s: %q is %s", id.Name, w, instead)
			found = append(found, Finding{Name, f.path, f.line(id.Pos()), text})
		}
	})
	return found
}

// options finds functions of runtime whose names do not tell options of New, With.., from those of calls.
func options(f *file) []Finding {
	if f.folder() != "runtime" || f.test {
		return nil
	}
	var found []Finding
	for _, decl := range f.ast.Decls {
		fn, ok := decl.(*ast.FuncDecl)
		if !ok || fn.Recv != nil || !fn.Name.IsExported() {
			continue
		}
		forNew := false
		if results := fn.Type.Results; results != nil && len(results.List) == 1 {
			result, ok := results.List[0].Type.(*ast.Ident)
			forNew = ok && result.Name == "Option"
		}
		if forNew != strings.HasPrefix(fn.Name.Name, "With") {
			found = append(found, Finding{Options, f.path, f.line(fn.Pos()),
				fn.Name.Name + ": With.. returns Option, an option of New, and nothing else does"})
		}
	}
	return found
}

// private returns the first private word of an identifier, or "", and what is used instead.
func private(name string) (word, instead string) {
	if instead, ok := wholeNames[name]; ok {
		return name, instead
	}
	if _, ok := allowedNames[name]; ok {
		return "", ""
	}
	words := camelWords(name)
	for i, w := range words {
		if w == "flight" && i > 0 && words[i-1] == "in" { // in-flight limits
			continue
		}
		if instead, ok := privateWords[w]; ok {
			return w, instead
		}
	}
	return "", ""
}

// camelWords splits an identifier into its words, in lower case.
func camelWords(name string) []string {
	var words []string
	runes := []rune(name)
	start := 0
	for i := 1; i <= len(runes); i++ {
		switch {
		case i == len(runes):
		case runes[i] == '_':
		case runes[i-1] == '_':
		case unicode.IsUpper(runes[i]) && !unicode.IsUpper(runes[i-1]):
		case unicode.IsUpper(runes[i]) && i+1 < len(runes) && unicode.IsLower(runes[i+1]):
		case unicode.IsDigit(runes[i]) != unicode.IsDigit(runes[i-1]):
		default:
			continue
		}
		words = append(words, strings.ToLower(string(runes[start:i])))
		start = i
	}
	return slices.DeleteFunc(words, func(w string) bool { return w == "_" })
}

// declared calls do with each identifier that a file declares: of types, functions, fields, parameters and
// locals.
func declared(f *ast.File, do func(*ast.Ident)) {
	each := func(fields *ast.FieldList) {
		if fields == nil {
			return
		}
		for _, field := range fields.List {
			for _, id := range field.Names {
				do(id)
			}
		}
	}
	define := func(tok token.Token, targets ...ast.Expr) {
		for _, target := range targets {
			if id, ok := target.(*ast.Ident); ok && tok == token.DEFINE {
				do(id)
			}
		}
	}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			do(n.Name)
			each(n.Recv)
		case *ast.FuncType:
			each(n.TypeParams)
			each(n.Params)
			each(n.Results)
		case *ast.StructType:
			each(n.Fields)
		case *ast.InterfaceType:
			each(n.Methods)
		case *ast.TypeSpec:
			do(n.Name)
			each(n.TypeParams)
		case *ast.ValueSpec:
			for _, id := range n.Names {
				do(id)
			}
		case *ast.AssignStmt:
			define(n.Tok, n.Lhs...)
		case *ast.RangeStmt:
			define(n.Tok, n.Key, n.Value)
		}
		return true
	})
}
