package emit

import (
	"fmt"
	"strconv"

	"github.com/dave/jennifer/jen"

	"github.com/sluice-go/sluice/gen/internal/lua"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// redis prints the script for each length of chain, for the Redis store. The file imports nothing.
func redis(f *file, r *model.Resource) {
	var written []string
	var names, choices []jen.Code
	for _, s := range lua.Scripts(r) {
		if s.Text == "" {
			continue
		}
		f.decl("", jen.Const().Id(s.Name).Op("=").Add(raw(s.Text+"\n")))
		written = append(written, strconv.Itoa(s.Chain))
		names = append(names, jen.Id(s.Name))
		choices = append(choices, jen.Case(jen.Lit(s.Chain)).Block(jen.Return(jen.Id(s.Name))))
	}
	f.decl(scriptDoc(r, written), jen.Func().Params(jen.Id(r.Definition)).Id("Script").Params(jen.Id(
		"chain").Int()).String().BlockFunc(func(g *jen.Group) {
		switch len(choices) {
		case 0:
		case 1:
			g.If(jen.Id("chain").Op("==").Lit(1)).Block(jen.Return(names[0]))
		default:
			g.Switch(jen.Id("chain")).Block(choices...)
		}
		g.Return(jen.Lit(""))
	}))
}

// scriptDoc is the doc comment of Script, with the chains that have scripts.
func scriptDoc(r *model.Resource, written []string) string {
	says := "Script implements redisstore.Scripter: the script for calls that charge so many buckets"
	if r.Holds {
		return says + ". It is \"\": buckets count what open leases hold, and the store has a script for that."
	}
	if r.Windows != "" {
		return says + ". It is \"\": limits have windows, and the store has a script for these."
	}
	if r.OnPlans {
		return says + ". It is \"\": plans change the numbers, and the store has a script for that."
	}
	if r.Variants != nil {
		return says + ". It is \"\": kinds differ in their limits, and the store loops over those of a chain."
	}
	if len(written) == 0 {
		return says + fmt.Sprintf(". It is \"\": a bucket has more than the %d limits that are written out, and "+
			"the store loops over them.", lua.MaxKeys)
	}
	says += ", " + words.List(written, "or") + ", and \"\" for others"
	if len(written) < len(r.Scripts) {
		return says + fmt.Sprintf(": longer chains have more than the %d keys that are written out, and the "+
			"store loops over them.", lua.MaxKeys)
	}
	return says + "."
}
