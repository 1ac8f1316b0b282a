package engine

import (
	"context"
	"encoding/base64"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/table"
	"github.com/sluice-go/sluice/runtime/memdynamo/internal/value"
)

// iteratorLife is how long a shard iterator may be used.
const iteratorLife = 15 * time.Minute

// iterator is a position in a shard. It is all in its text: nothing is kept of it.
type iterator struct {
	stream, shard string
	next          uint64    // the sequence number from which on it reads
	made          time.Time // to the millisecond
}

// String returns the iterator as clients see it.
func (i iterator) String() string {
	position := fmt.Sprintf("%s|%d|%d", i.shard, i.next, i.made.UnixMilli())
	return i.stream + "|1|" + base64.RawURLEncoding.EncodeToString([]byte(position))
}

// parseIterator reads what String wrote.
func parseIterator(text string) (i iterator, err error) {
	invalid := exception.Invalid("Invalid ShardIterator")
	arn, encoded, ok := strings.Cut(text, "|1|")
	if !ok {
		return i, invalid
	}
	position, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return i, invalid
	}
	parts := strings.Split(string(position), "|")
	if len(parts) != 3 {
		return i, invalid
	}
	i.stream, i.shard = arn, parts[0]
	if i.next, err = strconv.ParseUint(parts[1], 10, 64); err != nil {
		return i, invalid
	}
	made, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return i, invalid
	}
	i.made = time.UnixMilli(made)
	return i, nil
}

// shardOf returns the shard of that id, of the stream of that ARN.
func (db *DB) shardOf(arn, id string) (*stream, *table.Shard, error) {
	s := db.stream(arn)
	if s == nil {
		return nil, nil, exception.New(exception.ResourceNotFound,
			"Requested resource not found: Stream: %s not found", arn)
	}
	shard := s.Shard(id)
	if shard == nil {
		return nil, nil, exception.New(exception.ResourceNotFound,
			"Requested resource not found: Shard does not exist")
	}
	return s, shard, nil
}

// trimmed is the exception for data that the stream has forgotten.
func trimmed() error {
	return exception.New(exception.TrimmedDataAccess, "The data you are trying to access has been trimmed")
}

// Types of shard iterators.
const (
	trimHorizon   = "TRIM_HORIZON"
	latest        = "LATEST"
	atSequence    = "AT_SEQUENCE_NUMBER"
	afterSequence = "AFTER_SEQUENCE_NUMBER"
)

// getShardIteratorInput is GetShardIterator's input.
type getShardIteratorInput struct{ StreamArn, ShardID, ShardIteratorType, SequenceNumber *string }

func getShardIterator(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[getShardIteratorInput](input)
	if err != nil {
		return nil, err
	}
	if err := r.validate(); err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	s, shard, err := db.shardOf(*r.StreamArn, *r.ShardID)
	if err != nil {
		return nil, err
	}
	i := iterator{stream: s.arn, shard: shard.ID, made: m.now}
	if i.next, err = r.start(s, shard); err != nil {
		return nil, err
	}
	return reply(struct{ ShardIterator string }{i.String()})
}

// validate errs where the parameters break rules whatever the stream is.
func (r getShardIteratorInput) validate() error {
	var c constraints
	c.required("streamArn", r.StreamArn != nil)
	c.required("shardId", r.ShardID != nil)
	if n := r.SequenceNumber; n != nil && r.wantsNumber() {
		c.length("sequenceNumber", *n, len(*n), minSequenceNumber, maxSequenceNumber)
	}
	if err := c.err(); err != nil {
		return err
	}
	switch {
	case r.wantsNumber() && r.SequenceNumber == nil:
		return invalidParameters("Invalid SequenceNumber")
	case r.wantsNumber():
		return nil
	case r.ShardIteratorType == nil || *r.ShardIteratorType != trimHorizon && *r.ShardIteratorType != latest:
		return exception.Invalid("Invalid ShardIteratorType.")
	case r.SequenceNumber != nil:
		return invalidParameters("SequenceNumber should not be passed for this iterator type")
	}
	return nil
}

// wantsNumber reports whether the iterator's type is one that starts at a sequence number.
func (r getShardIteratorInput) wantsNumber() bool {
	return r.ShardIteratorType != nil &&
		(*r.ShardIteratorType == atSequence || *r.ShardIteratorType == afterSequence)
}

// start returns the sequence number from which on the new iterator reads.
func (r getShardIteratorInput) start(s *stream, shard *table.Shard) (uint64, error) {
	switch *r.ShardIteratorType {
	case trimHorizon:
		return max(shard.First, shard.Trimmed+1), nil
	case latest:
		return s.Latest + 1, nil
	}
	n, err := strconv.ParseUint(*r.SequenceNumber, 10, 64)
	if err != nil {
		return 0, invalidParameters("Invalid SequenceNumber")
	}
	if n < shard.First || n > s.Latest || shard.Last != 0 && n > shard.Last {
		return 0, exception.Invalid("Invalid SequenceNumber for the shard")
	}
	if n <= shard.Trimmed {
		return 0, trimmed()
	}
	if *r.ShardIteratorType == afterSequence {
		n++
	}
	return n, nil
}

// Most that GetRecords returns at once.
const (
	maxRecords     = 1000
	maxRecordBytes = 1 << 20
)

func getRecords(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		ShardIterator *string
		Limit         *int
	}](input)
	if err != nil {
		return nil, err
	}
	limit, err := limited(r.Limit, maxRecords, "Limit should be less than or equal to 1000")
	if err != nil {
		return nil, err
	}
	if r.ShardIterator == nil {
		return nil, exception.Invalid("Invalid ShardIterator")
	}
	i, err := parseIterator(*r.ShardIterator)
	if err != nil {
		return nil, err
	}
	m := db.enter()
	defer db.mu.Unlock()
	s, shard, err := db.shardOf(i.stream, i.shard)
	if err != nil {
		return nil, err
	}
	if m.now.Sub(i.made) > iteratorLife {
		return nil, exception.New(exception.ExpiredIterator, "The shard iterator has expired")
	}
	if i.next <= shard.Trimmed {
		return nil, trimmed()
	}
	output := []byte(`{"Records":[`)
	bytes := 0
	for n, record := range shard.Read(i.next, limit) {
		bytes += recordSize(record)
		if n > 0 {
			if bytes > maxRecordBytes {
				break
			}
			output = append(output, ',')
		}
		output = s.appendRecord(output, record)
		i.next = record.Sequence + 1
	}
	output = append(output, ']')
	if shard.Last == 0 || len(shard.Read(i.next, 1)) > 0 { // the end of a closed shard has no next
		i.made = m.now
		output = append(output, `,"NextShardIterator":`...)
		output = value.AppendString(output, i.String())
	}
	return append(output, '}'), nil
}

// recordSize returns the SizeBytes of a record.
func recordSize(r table.Record) int {
	return value.ItemSize(r.Keys) + value.ItemSize(r.Old) + value.ItemSize(r.New)
}

// appendRecord appends a record as JSON.
func (s *stream) appendRecord(b []byte, r table.Record) []byte {
	id := fnv.New128a()
	_, _ = id.Write([]byte(s.arn + "|" + sequenceNumber(r.Sequence))) // it never fails
	b = append(b, `{"eventID":"`...)
	b = fmt.Appendf(b, "%x", id.Sum(nil))
	b = append(b, `","eventName":"`+r.Event+`","eventVersion":"1.1","eventSource":"aws:dynamodb","awsRegion":"`+
		Region...)
	b = append(b, `","dynamodb":{"ApproximateCreationDateTime":`...)
	b = strconv.AppendInt(b, r.At.Unix(), 10)
	b = append(b, `,"Keys":`...)
	b = value.AppendMap(b, r.Keys)
	if r.New != nil {
		b = append(b, `,"NewImage":`...)
		b = value.AppendMap(b, r.New)
	}
	if r.Old != nil {
		b = append(b, `,"OldImage":`...)
		b = value.AppendMap(b, r.Old)
	}
	b = append(b, `,"SequenceNumber":"`+sequenceNumber(r.Sequence)+`","SizeBytes":`...)
	b = strconv.AppendInt(b, int64(recordSize(r)), 10)
	b = append(b, `,"StreamViewType":"`+s.View+`"}`...)
	if r.Service {
		b = append(b, `,"userIdentity":{"PrincipalId":"dynamodb.amazonaws.com","Type":"Service"}`...)
	}
	return append(b, '}')
}
