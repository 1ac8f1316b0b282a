package usage

import (
	"encoding/json"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Poison is a record that cannot be read. It is put aside, so that those behind it are not kept waiting.
type Poison struct {
	Shard  string       // lambda where Lambda delivered it, which does not say
	Record codec.Record // with what images it has
	Err    error
}

// MarshalJSON returns all there is to know of p: error, shard, sequence, at, old and new. An image is as
// DynamoDB's own JSON has it: by attribute, the type, and what that holds. Values that no item of sluice has,
// sets and lists and such, are null.
func (p Poison) MarshalJSON() ([]byte, error) {
	return json.Marshal(struct {
		Error    string     `json:"error"`
		Shard    string     `json:"shard"`
		Sequence string     `json:"sequence"`
		At       time.Time  `json:"at"`
		Old      *wireImage `json:"old"`
		New      *wireImage `json:"new"`
	}{p.Err.Error(), p.Shard, p.Record.Sequence, p.Record.At, wireImageOf(p.Record.Old),
		wireImageOf(p.Record.New)})
}

// wireImage is an item: by attribute, the type, and what that holds.
type wireImage map[string]map[string]*string

func wireImageOf(img codec.Image) *wireImage {
	if img == nil {
		return nil
	}
	all := wireImage{}
	img.Each(func(name string) bool {
		kind, text := img.Attr(name)
		all[name] = map[string]*string{kind: nil}
		if kind == "S" || kind == "N" {
			all[name][kind] = &text
		}
		return true
	})
	return &all
}
