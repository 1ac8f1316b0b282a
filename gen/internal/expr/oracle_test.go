package expr

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/expression"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/google/go-cmp/cmp"

	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/window"
)

// resource returns a resource with these limits and removed limits. windows are the limits that have windows;
// if they are in held too, on_crash is release. Other limits in held are in flight.
func resource(limits, removed, held []string, windows ...string) *model.Resource {
	r := &schema.Resource{Name: "api", GoName: "API", Removed: removed}
	w := window.Of("day")
	for _, name := range limits {
		l := &schema.Limit{Name: name, GoName: strings.ToUpper(name[:1]) + name[1:]}
		holds := slices.Contains(held, name)
		if slices.Contains(windows, name) {
			l.Window = &w
			l.Release = holds
		} else {
			l.InFlight = holds
		}
		r.Limits = append(r.Limits, l)
	}
	return model.ResourceOf(r)
}

// onPlans returns r with plans.
func onPlans(r *model.Resource) *model.Resource {
	r.OnPlans = true
	return r
}

// TestOracle holds every path's text against what feature/dynamodb/expression builds for the same update and
// condition: the same actions on the same attributes, the same tree of the condition.
func TestOracle(t *testing.T) {
	for _, r := range []*model.Resource{
		resource([]string{"rps"}, nil, nil),
		resource([]string{"rpm", "tpm"}, []string{"old"}, nil),
		resource([]string{"a", "a_b", "net", "tk_tk"}, []string{"x", "y_z"}, nil),
		resource([]string{"usd"}, nil, nil, "usd"),
		resource([]string{"rpm", "usd", "we_we", "x"}, []string{"old"}, nil, "usd", "we_we"),
		resource([]string{"parallel"}, nil, []string{"parallel"}),
		resource([]string{"rpm", "month", "parallel", "day"}, []string{"old"}, []string{"month", "parallel"},
			"month", "day"),
		resource([]string{"e", "e_e0", "h0"}, nil, []string{"e", "e_e0"}, "e"),
		onPlans(resource([]string{"rpm", "month", "po"}, []string{"old"}, nil, "month")),
	} {
		for _, p := range Paths(r) {
			update, cond := oracle(t, r, p.Method)
			if diff := cmp.Diff(cond, parseCondition(t, p.Condition)); diff != "" {
				t.Errorf("%s condition (-expression package +ours):\n%s", p.Method, diff)
			}
			if p.Update == "" {
				continue
			}
			if diff := cmp.Diff(update, actions(t, strings.ReplaceAll(p.Update, "#ttl", "ttl"))); diff != "" {
				t.Errorf("%s update (-expression package +ours):\n%s", p.Method, diff)
			}
			if p.Method == "Reshape" { // the control: a bound that moved is seen
				if want := strings.Count(p.Condition, "_we0"); r.Windows != "" && want == 0 {
					t.Error("a reshape names no window")
				}
				if r.Holds && !strings.Contains(p.Condition, "_e0") {
					t.Error("a reshape names no epoch")
				}
				broken := parseCondition(t, strings.Replace(p.Condition, "_lo AND", "_hi AND", 1))
				if cmp.Diff(cond, broken) == "" {
					t.Error("a condition with another bound counts as the same")
				}
			}
		}
	}
}

// oracle builds the path of docs/design.md, "Write paths", with the expression package.
func oracle(t *testing.T, r *model.Resource, path string) (update []string, condition any) {
	t.Helper()
	name := expression.Name
	val := func(placeholder string) expression.ValueBuilder { return expression.Value(placeholder) }
	of := func(l *model.Limit, suffix string) expression.ValueBuilder { return val(":" + l.Name + "_" + suffix) }

	u := expression.Set(name("op"), val(":op")).Set(name("ttl"), val(":ttl"))
	var conds []expression.ConditionBuilder
	if path == "Normal" || path == "Reshape" {
		u = u.Set(name("rf"), val(":rf"))
		conds = append(conds, name("rf").Equal(val(":rf0")))
	}
	if path == "Normal" || path == "Retry" || path == "Reshape" {
		conds = append(conds, name("cv").Equal(val(":cv")))
	}
	conds = append(conds, name("op").NotEqual(val(":op")))
	for _, l := range r.Limits {
		tokens, consumed := name(l.Attrs.Tokens), name(l.Attrs.Consumed)
		between := tokens.Between(of(l, "lo"), of(l, "hi"))
		u = u.Add(consumed, of(l, "use"))
		ends := name("b_" + l.Name + "_we")
		same := ends.Equal(of(l, "we0"))
		if l.Window != nil && (path == "Normal" || path == "Reshape") {
			u = u.Set(ends, of(l, "we"))
		}
		switch path {
		case "Normal", "Retry":
			u = u.Add(tokens, of(l, "net"))
			conds = append(conds, between)
			if l.Window != nil {
				conds = append(conds, same)
			}
		case "Adjust":
			u = u.Add(tokens, of(l, "net"))
			switch {
			case l.Window != nil:
				conds = append(conds, same)
			case !l.Holds():
				conds = append(conds, tokens.AttributeExists())
			}
		case "Reshape":
			u = u.Set(tokens, expression.Plus(tokens.IfNotExists(of(l, "bx")), of(l, "net"))).
				Set(name(l.Attrs.Capacity), of(l, "cp")).Set(name(l.Attrs.Burst), of(l, "bx")).
				Set(name(l.Attrs.Refill), of(l, "ra")).Set(name(l.Attrs.Period), of(l, "rp"))
			conds = append(conds, tokens.AttributeNotExists().Or(between))
			if l.Window != nil {
				conds = append(conds, ends.AttributeNotExists().Or(same))
			}
		}
		if l.Holds() {
			u, conds = oracleHolds(l.Name, path, u, conds)
		}
	}
	if path == "Reshape" {
		u = u.Set(name("cv"), val(":cv1"))
		if r.OnPlans {
			u = u.Set(name("po"), val(":po"))
		}
		for _, a := range r.Removed {
			for _, attr := range a.All() {
				u = u.Remove(name(attr))
			}
		}
	}
	cond := name("PK").AttributeNotExists()
	if path != "Create" {
		cond = conds[0].And(conds[1], conds[2:]...)
	}
	built, err := expression.NewBuilder().WithUpdate(u).WithCondition(cond).Build()
	if err != nil {
		t.Fatal("the oracle is wrong: ", err)
	}
	return actions(t, original(*built.Update(), built)), parseCondition(t, original(*built.Condition(), built))
}

// oracleHolds adds the actions and clauses of a limit that counts holds.
func oracleHolds(limit, path string, u expression.UpdateBuilder, conds []expression.ConditionBuilder) (
	expression.UpdateBuilder, []expression.ConditionBuilder,
) {
	attr := func(field string) expression.NameBuilder { return expression.Name("b_" + limit + "_" + field) }
	val := func(suffix string) expression.ValueBuilder { return expression.Value(":" + limit + "_" + suffix) }
	epoch := attr("e")
	if path == "Normal" || path == "Reshape" {
		u = u.Set(epoch, val("e"))
	}
	for _, cell := range []string{"0", "1"} {
		u = u.Add(attr("h"+cell), val("d"+cell))
	}
	switch path {
	case "Normal":
		conds = append(conds, epoch.Equal(val("e0")), attr("h0").Between(val("h0lo"), val("h0hi")),
			attr("h1").Between(val("h1lo"), val("h1hi")))
	case "Reshape":
		conds = append(conds, epoch.AttributeNotExists().Or(epoch.Equal(val("e0"))))
	default:
		conds = append(conds, epoch.Between(val("e0"), val("e1")))
	}
	return u, conds
}

// original puts names and our placeholders back where the package put its own.
func original(text string, built expression.Expression) string {
	var b strings.Builder
	for _, token := range tokens(text) {
		if attr, ok := built.Names()[token]; ok {
			token = attr
		}
		if v, ok := built.Values()[token].(*types.AttributeValueMemberS); ok {
			token = v.Value
		}
		b.WriteString(token + " ")
	}
	return b.String()
}

// tokens splits an expression.
func tokens(text string) []string {
	for _, c := range []string{"(", ")", ",", "=", "<>", "+"} {
		text = strings.ReplaceAll(text, c, " "+c+" ")
	}
	return strings.Fields(text)
}

// actions returns the actions of an update, each with its clause, sorted.
func actions(t *testing.T, text string) []string {
	t.Helper()
	var list []string
	clause, action, depth := "", "", 0
	flush := func() {
		if action != "" {
			list = append(list, clause+action)
		}
		action = ""
	}
	for _, token := range tokens(text) {
		switch {
		case token == "SET", token == "ADD", token == "REMOVE", token == "DELETE":
			flush()
			clause = token
			continue
		case token == "," && depth == 0:
			flush()
			continue
		case token == "(":
			depth++
		case token == ")":
			depth--
		}
		action += " " + token
	}
	flush()
	if depth != 0 || clause == "" {
		t.Errorf("not an update: %s", text)
	}
	slices.Sort(list)
	return list
}

// parseCondition returns the tree of a condition: a string for a clause, a list that starts with AND or OR
// else. Nested ANDs are one.
func parseCondition(t *testing.T, text string) any {
	t.Helper()
	p := &parser{tokens: tokens(text)}
	tree := p.or()
	if len(p.tokens) > 0 {
		t.Errorf("condition ends before %v: %s", p.tokens, text)
	}
	return tree
}

type parser struct{ tokens []string }

func (p *parser) next() string {
	if len(p.tokens) == 0 {
		return ""
	}
	first := p.tokens[0]
	p.tokens = p.tokens[1:]
	return first
}

func (p *parser) peek() string { return strings.Join(p.tokens[:min(1, len(p.tokens))], "") }

func (p *parser) or() any  { return p.list("OR", p.and) }
func (p *parser) and() any { return p.list("AND", p.clause) }

func (p *parser) list(op string, part func() any) any {
	list := []any{op}
	for {
		tree := part()
		if inner, ok := tree.([]any); ok && inner[0] == op {
			list = append(list, inner[1:]...)
		} else {
			list = append(list, tree)
		}
		if p.peek() != op {
			break
		}
		p.next()
	}
	if len(list) == 2 {
		return list[1]
	}
	return list
}

func (p *parser) clause() any {
	if p.peek() == "(" {
		p.next()
		tree := p.or()
		p.next()
		return tree
	}
	first, second := p.next(), p.next()
	switch second {
	case "(": // a function of one attribute
		return strings.Join([]string{first, second, p.next(), p.next()}, " ")
	case "BETWEEN":
		return strings.Join([]string{first, second, p.next(), p.next(), p.next()}, " ")
	}
	return strings.Join([]string{first, second, p.next()}, " ")
}
