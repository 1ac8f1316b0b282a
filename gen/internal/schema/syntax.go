package schema

import "github.com/sluice-go/sluice/gen/internal/yamltext"

// syntax reports an error of yaml.v3.
func (r documentReader) syntax(src []byte, err error) {
	e := yamltext.Explain(src, err)
	if e.Alias != "" {
		r.add(r.at(e.Line, e.Column), ruleYAMLFeature, noAlias, "alias *"+short(e.Alias))
		return
	}
	r.add(r.at(e.Line, e.Column), ruleYAMLSyntax, "not YAML: %s", e.Why)
}

const noAlias = "%s: anchors and aliases are not supported, write the value where it applies"
