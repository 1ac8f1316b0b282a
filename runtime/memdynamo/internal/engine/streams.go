package engine

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
)

// streamRetention is how long streams remember.
const streamRetention = 24 * time.Hour

// stream is a stream and the table whose it is or was.
type stream struct {
	*table.Stream
	arn   string
	table table.Def
}

// streamARN returns the ARN of a stream of the table of that name.
func streamARN(tableName string, s *table.Stream) string {
	return tableARN(tableName) + "/stream/" + s.Label
}

// enableStream begins a stream of the table. No two streams have one ARN: where the clock stands still, the
// label moves on.
func (db *DB) enableStream(t *tableState, view string, at time.Time) {
	for ; ; at = at.Add(time.Millisecond) {
		t.EnableStream(view, 1, at)
		if s := t.Stream(); db.stream(streamARN(t.Def.Name, s)) == nil {
			db.streams = append(db.streams, &stream{s, streamARN(t.Def.Name, s), t.Def})
			return
		}
	}
}

// stream returns the stream of that ARN, or nil.
func (db *DB) stream(arn string) *stream {
	i := slices.IndexFunc(db.streams, func(s *stream) bool { return s.arn == arn })
	if i < 0 {
		return nil
	}
	return db.streams[i]
}

// trim makes streams forget what is too old, and forgets those that are disabled and empty.
func (db *DB) trim(m moment) {
	for _, s := range db.streams {
		s.Trim(m.now.Add(-streamRetention))
	}
	db.streams = slices.DeleteFunc(db.streams, func(s *stream) bool { return !s.Enabled && len(s.Shards) == 0 })
}

// SplitShards splits every open shard of the table's stream in two, as the service does when it likes. Those
// that were open close, and their children tell what comes next.
func (db *DB) SplitShards(tableName string) error {
	m := db.enter()
	defer db.mu.Unlock()
	t, err := db.lookup(tableName)
	if err != nil {
		return err
	}
	s := t.Stream()
	if s == nil || !s.Enabled {
		return exception.Invalid("Table has no stream to split: TableName: %s", t.Def.Name)
	}
	s.Split(m.now)
	return nil
}

// maxStreams is how many streams, or shards of one, a list has at most.
const maxStreams = 100

// limited returns how many elements a list may have, by its Limit; complaint is the service's about a higher
// one.
func limited(limit *int, most int, complaint string) (int, error) {
	var c constraints
	c.between("limit", limit, 1, 0)
	if err := c.err(); err != nil {
		return 0, err
	}
	switch {
	case limit == nil:
		return most, nil
	case *limit > most:
		return 0, invalidParameters("%s", complaint)
	default:
		return *limit, nil
	}
}

func listStreams(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		TableName, ExclusiveStartStreamArn *string
		Limit                              *int
	}](input)
	if err != nil {
		return nil, err
	}
	limit, err := limited(r.Limit, maxStreams, "Limit cannot be greater than the maximum allowed size: 100")
	if err != nil {
		return nil, err
	}
	type summary struct{ StreamArn, TableName, StreamLabel string }
	output := struct {
		Streams                []summary
		LastEvaluatedStreamArn string `json:",omitempty"`
	}{Streams: []summary{}}
	db.enter()
	defer db.mu.Unlock()
	byARN := func(a, b *stream) int { return strings.Compare(a.arn, b.arn) }
	for _, s := range slices.SortedFunc(slices.Values(db.streams), byARN) {
		if r.TableName != nil && s.table.Name != tableName(*r.TableName) ||
			r.ExclusiveStartStreamArn != nil && s.arn <= *r.ExclusiveStartStreamArn {
			continue
		}
		if len(output.Streams) == limit {
			output.LastEvaluatedStreamArn = output.Streams[limit-1].StreamArn
			break
		}
		output.Streams = append(output.Streams, summary{s.arn, s.table.Name, s.Label})
	}
	return reply(output)
}

// StreamDescription and its parts, as the service returns them.
type (
	streamDescription struct {
		StreamArn, StreamLabel, StreamStatus, StreamViewType string
		CreationRequestDateTime                              epoch
		TableName                                            string
		KeySchema                                            []keySchemaElement
		Shards                                               []shardDescription
		LastEvaluatedShardID                                 string `json:"LastEvaluatedShardId,omitempty"`
	}

	shardDescription struct {
		ShardID             string `json:"ShardId"`
		SequenceNumberRange sequenceNumberRange
		ParentShardID       string `json:"ParentShardId,omitempty"`
	}

	sequenceNumberRange struct {
		StartingSequenceNumber string
		EndingSequenceNumber   string `json:",omitempty"`
	}
)

func describeStream(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		StreamArn, ExclusiveStartShardID *string
		Limit                            *int
	}](input)
	if err != nil {
		return nil, err
	}
	if r.StreamArn == nil {
		return nil, exception.Invalid("Invalid StreamArn")
	}
	var c constraints
	c.shard("exclusiveStartShardId", r.ExclusiveStartShardID)
	if err := c.err(); err != nil {
		return nil, err
	}
	limit, err := limited(r.Limit, maxStreams, "Limit cannot be greater than the maximum: 100")
	if err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	s := db.stream(*r.StreamArn)
	if s == nil {
		return nil, exception.New(exception.ResourceNotFound, "Requested resource not found: Stream: %s not found",
			*r.StreamArn)
	}
	d := streamDescription{
		StreamArn: s.arn, StreamLabel: s.Label, StreamStatus: "DISABLED", StreamViewType: s.View,
		CreationRequestDateTime: epoch(s.Created),
		TableName:               s.table.Name,
		KeySchema:               elementsOf(s.table.Key),
		Shards:                  []shardDescription{},
	}
	if s.Enabled {
		d.StreamStatus = "ENABLED"
	}
	for _, shard := range s.Shards { // their ids rise
		if r.ExclusiveStartShardID != nil && shard.ID <= *r.ExclusiveStartShardID {
			continue
		}
		if len(d.Shards) == limit {
			d.LastEvaluatedShardID = d.Shards[limit-1].ShardID
			break
		}
		d.Shards = append(d.Shards, describeShard(shard))
	}
	return reply(struct{ StreamDescription streamDescription }{d})
}

// describeShard returns the description of a shard. Only a closed one has an end.
func describeShard(s *table.Shard) shardDescription {
	d := shardDescription{ShardID: s.ID, ParentShardID: s.Parent}
	d.SequenceNumberRange.StartingSequenceNumber = sequenceNumber(s.First)
	if s.Last != 0 {
		d.SequenceNumberRange.EndingSequenceNumber = sequenceNumber(s.Last)
	}
	return d
}

// shard holds that a shard's id, if it is there, is of the length that ids have.
func (c *constraints) shard(at string, id *string) {
	if id != nil {
		c.length(at, *id, len(*id), 28, 65)
	}
}

// minSequenceNumber and maxSequenceNumber are how many digits a sequence number has.
const (
	minSequenceNumber = 21
	maxSequenceNumber = 40
)

// sequenceNumber returns n as streams write it: as texts, they sort like numbers.
func sequenceNumber(n uint64) string {
	digits := strconv.FormatUint(n, 10)
	return strings.Repeat("0", minSequenceNumber-len(digits)) + digits
}
