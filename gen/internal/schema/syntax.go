package schema

import (
	"github.com/sluice-go/sluice/gen/internal/hint"
	"github.com/sluice-go/sluice/gen/internal/yamltext"

	"github.com/sluice-go/sluice/gen/internal/rules"
)

// syntax reports an error of yaml.v3.
func (r documentReader) syntax(src []byte, err error) {
	e := yamltext.Explain(src, err)
	if e.Alias != "" {
		r.add(r.at(e.Line, e.Column), rules.YAMLFeature, noAlias, "alias *"+hint.Short(e.Alias))
		return
	}
	r.add(r.at(e.Line, e.Column), rules.YAMLSyntax, "not YAML: %s", e.Why)
}

const noAlias = "%s: anchors and aliases are not supported, write the value where it applies"
