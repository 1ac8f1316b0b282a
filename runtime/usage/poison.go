package usage

import (
	"encoding/json"
	"time"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
)

// Poison is a record that cannot be read. It is put aside, so that it does not block the records after it.
type Poison struct {
	Shard  string       // lambda if Lambda delivered it, which does not name the shard
	Record codec.Record // with the images that it has
	Err    error
}

// MarshalJSON returns an object with error, shard, sequence, at, old and new. An image has the form of
// DynamoDB's JSON: by attribute, the type and the value. Values of types that no item of sluice has, such as
// sets and lists, are null.
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

// wireImage is an item: by attribute, the type and the value.
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
