package migrate

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// position is how far a segment has been read. Each segment has an item of its own for it, so that segments
// do not wait for each other:
//
//	PK       SK
//	SYSTEM#  #CHECKPOINT#migrate#0 of 4
//
// The other attributes are scope, segment, segments, scanned and missed, and either after_pk and after_sk or
// done.
type position struct {
	name        string // of the job; empty for one whose position is not kept
	segment, of int
	at          codec.Item // the last key that was read, nil for none
	scanned     int64      // items up to there
	missed      int64      // buckets up to there that are to be looked at again
	done        bool       // there are no more
}

const (
	systemKey        = "SYSTEM#"
	checkpointPrefix = "#CHECKPOINT#"
)

// positions returns where the segments are: where a run that did the same was ended, however many it had, or
// at their beginnings.
func (r *run) positions(ctx context.Context, name string) ([]*position, error) {
	kept, err := r.kept(ctx, name)
	if err != nil {
		return nil, err
	}
	of := r.Segments
	if len(kept) > 0 {
		of = kept[0].of
		r.report.resume(kept)
	}
	all := make([]*position, of)
	for i := range all {
		all[i] = &position{name: name, segment: i, of: of}
	}
	for _, p := range kept {
		all[p.segment] = p
	}
	return all, nil
}

// kept reads the positions of a run with the same scope. It deletes positions with another scope, since they
// do not tell which items that run passed over.
func (r *run) kept(ctx context.Context, name string) ([]*position, error) {
	if name == "" {
		return nil, nil
	}
	in := &dynamodb.QueryInput{
		TableName: &r.Table, ConsistentRead: aws.Bool(true),
		KeyConditionExpression: aws.String("PK = :system AND begins_with(SK, :positions)"),
		ExpressionAttributeValues: codec.Item{
			":system": codec.S(systemKey), ":positions": codec.S(checkpointPrefix + name + "#"),
		},
		ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}
	out, err := r.Client.Query(ctx, in, patiently) // 100 items are far below a page
	if err != nil {
		return nil, fmt.Errorf("read the checkpoints in table %s: %w", r.Table, err)
	}
	r.report.read(0, out.ConsumedCapacity)
	var kept, other []*position
	for _, item := range out.Items {
		p, scope, err := decode(name, item)
		if err != nil {
			return nil, &store.SetupError{
				What: fmt.Sprintf("the checkpoint %s / %s of table %s is malformed", systemKey, text(item["SK"]),
					r.Table), Err: err,
				Do: "delete it: what is done is marked, and not done again",
			}
		}
		if scope == r.scope() {
			kept = append(kept, p)
		} else {
			other = append(other, p)
		}
	}
	return kept, r.deletePositions(ctx, other)
}

// scope names what a run converts or deletes. A run with another scope cannot use its positions, since it
// may have to read items that this one passed over.
func (c *Config) scope() string {
	var scope []string
	for _, spec := range c.Specs {
		if c.Resource != "" && spec.Resource != c.Resource {
			continue
		}
		var kinds []string
		for _, k := range spec.Kinds {
			if k.Limits != nil {
				kinds = append(kinds, k.Name)
			}
		}
		limits := slices.Sorted(slices.Values(slices.Concat(spec.Limits, spec.Removed)))
		scope = append(scope, fmt.Sprintf("%s: %s of %s", spec.Resource, strings.Join(limits, ", "),
			strings.Join(kinds, ", ")))
	}
	if c.Resource == "" {
		scope = append(scope, "all")
	}
	if c.Expired {
		scope = append(scope, "expired")
	}
	return strings.Join(scope, "; ")
}

// decode reads a position.
func decode(name string, item codec.Item) (p *position, scope string, err error) {
	d := codec.Decoder{Item: item}
	p = &position{
		name: name, of: int(d.Int("segments")), segment: int(d.Int("segment")), scanned: d.Int("scanned"),
		missed: d.Int("missed"),
	}
	scope = d.Text("scope")
	if item["done"] != nil {
		p.done = d.Bool("done")
	} else {
		p.at = codec.Item{"PK": codec.S(d.Text("after_pk")), "SK": codec.S(d.Text("after_sk"))}
	}
	if d.Err() == nil && (p.of < 1 || p.of > MostSegments || p.segment < 0 || p.segment >= p.of) {
		return nil, "", fmt.Errorf("there is no segment %d of %d", p.segment, p.of)
	}
	return p, scope, d.Err()
}

func (p *position) key() codec.Item {
	return codec.Item{
		"PK": codec.S(systemKey), "SK": codec.S(fmt.Sprintf("%s%s#%d of %d", checkpointPrefix, p.name, p.segment,
			p.of)),
	}
}

// save stores p, unless p has no name. If a kill prevents it, the next run reads one page again.
func (r *run) save(ctx context.Context, p *position) error {
	if p.name == "" {
		return nil
	}
	if err := r.pace.pay(ctx, 1); err != nil {
		return err
	}
	item := p.key()
	item["segment"], item["segments"] = codec.N(int64(p.segment)), codec.N(int64(p.of))
	item["scanned"], item["missed"], item["scope"] = codec.N(p.scanned), codec.N(p.missed), codec.S(r.scope())
	if p.done {
		item["done"] = &types.AttributeValueMemberBOOL{Value: true}
	} else {
		item["after_pk"], item["after_sk"] = p.at["PK"], p.at["SK"]
	}
	out, err := r.Client.PutItem(ctx, &dynamodb.PutItemInput{
		TableName: &r.Table, Item: item, ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal,
	}, patiently)
	if err != nil {
		return fmt.Errorf("write a checkpoint to table %s: %w", r.Table, err)
	}
	r.report.wrote(out.ConsumedCapacity)
	return nil
}

// deletePositions deletes positions that were kept. One transaction deletes all of them: if some were left,
// the next run would take their segments for done.
func (r *run) deletePositions(ctx context.Context, positions []*position) error {
	if len(positions) == 0 || positions[0].name == "" {
		return nil
	}
	for chunk := range slices.Chunk(positions, MostSegments) {
		in := &dynamodb.TransactWriteItemsInput{ReturnConsumedCapacity: types.ReturnConsumedCapacityTotal}
		for _, p := range chunk {
			in.TransactItems = append(in.TransactItems,
				types.TransactWriteItem{Delete: &types.Delete{TableName: &r.Table, Key: p.key()}})
		}
		out, err := r.Client.TransactWriteItems(ctx, in, patiently)
		if err != nil {
			return fmt.Errorf("delete the checkpoints in table %s: %w", r.Table, err)
		}
		for i := range out.ConsumedCapacity {
			r.report.wrote(&out.ConsumedCapacity[i])
		}
	}
	return nil
}
