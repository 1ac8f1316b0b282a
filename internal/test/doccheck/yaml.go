package doccheck

import (
	"fmt"
	"os"
	"path/filepath"

	"go.yaml.in/yaml/v3"

	"github.com/sluice-go/sluice/gen"
)

// readYAML reads b as a limits.yaml or, where it says no version, as the part of one: that is written over
// what d.Schema says.
func (d *document) readYAML(b block) {
	base, err := os.ReadFile(filepath.Join(d.Root, d.Schema))
	if err == nil {
		err = readPart([]byte(b.text), base)
	}
	if err != nil {
		d.add(b, "this is no limits.yaml, nor a part that fits into %s: %v", d.Schema, err)
	}
}

// readPart says what is wrong with a limits.yaml, or with one that says what part does and, besides, what
// base does.
func readPart(part, base []byte) error {
	var over, under yaml.Node
	if err := yaml.Unmarshal(part, &over); err != nil {
		return err
	}
	if err := yaml.Unmarshal(base, &under); err != nil {
		return err
	}
	if len(over.Content) == 0 || over.Content[0].Kind != yaml.MappingNode {
		return fmt.Errorf("it has no keys")
	}
	text := part
	if valueOf(over.Content[0], "version") == nil {
		merge(under.Content[0], over.Content[0])
		var err error
		if text, err = yaml.Marshal(&under); err != nil {
			return err
		}
	}
	dir, err := os.MkdirTemp("", "doccheck")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	file := filepath.Join(dir, "limits.yaml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return err
	}
	_, err = gen.Load(file)
	return err
}

// merge writes over into under, key by key.
func merge(under, over *yaml.Node) {
	for i := 0; i+1 < len(over.Content); i += 2 {
		key, value := over.Content[i], over.Content[i+1]
		at := valueOf(under, key.Value)
		switch {
		case at == nil:
			under.Content = append(under.Content, key, value)
		case at.Kind == yaml.MappingNode && value.Kind == yaml.MappingNode:
			merge(at, value)
		default:
			*at = *value
		}
	}
}

// valueOf returns the value of a key of a mapping, nil if there is none.
func valueOf(mapping *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == key {
			return mapping.Content[i+1]
		}
	}
	return nil
}
