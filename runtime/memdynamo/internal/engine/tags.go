package engine

import (
	"context"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/sluice-go/sluice/runtime/memdynamo/internal/exception"
)

// Bounds of tags: their number, and the characters of each.
const (
	maxTags     = 50
	maxTagKey   = 128
	maxTagValue = 256
)

// tag is a tag of a table.
type tag struct{ Key, Value *string }

// checkTags errs where tags that a request brings are not as tags are.
func checkTags(tags []tag) error {
	seen := map[string]bool{}
	for _, tag := range tags {
		switch {
		case tag.Key == nil || !validTagKey(*tag.Key):
			return invalidTagKey(orNull(tag.Key))
		case strings.HasPrefix(*tag.Key, "aws:"):
			return exception.Invalid("Tag Key cannot be prefixed with aws:, Key: %s", *tag.Key)
		case tag.Value == nil || !validTagText(*tag.Value, maxTagValue):
			return exception.Invalid("The Tag Value provided is invalid, Value: %s", orNull(tag.Value))
		case seen[*tag.Key]:
			return exception.Invalid("Duplicate Tag Keys provided as input: Duplicate Tag Key found %s", *tag.Key)
		}
		seen[*tag.Key] = true
	}
	return checkTagCount(len(tags))
}

func invalidTagKey(key string) error {
	return exception.Invalid("The Tag Key provided is invalid, Key: %s", key)
}

// checkTagCount errs where a table would have too many tags, or a request names too many.
func checkTagCount(n int) error {
	if n > maxTags {
		return exception.Invalid("Number of Tags exceed the current limit for the provided ResourceArn")
	}
	return nil
}

func validTagKey(key string) bool { return key != "" && validTagText(key, maxTagKey) }

// validTagText reports whether text is of so many characters at most, and of those that tags may have.
func validTagText(text string, most int) bool {
	return utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, func(r rune) bool {
		return !unicode.In(r, unicode.L, unicode.N, unicode.Z) && !strings.ContainsRune("+-=._:/@", r)
	})
}

// putTags adds tags, which have been checked, to the table's, or replaces their values.
func (t *tableState) putTags(tags []tag) error {
	sum := maps.Clone(t.tags)
	if sum == nil {
		sum = map[string]string{}
	}
	for _, tag := range tags {
		sum[*tag.Key] = *tag.Value
	}
	if err := checkTagCount(len(sum)); err != nil {
		return err
	}
	t.tags = sum
	return nil
}

// checkResource errs unless arn is the ARN of a table, which need not exist.
func checkResource(arn string) error {
	switch {
	case !strings.HasPrefix(arn, "arn:"):
		return invalidParameters("ARNs must start with 'arn:': %s", arn)
	case !strings.HasPrefix(arn, "arn:aws:dynamodb:"):
		return invalidParameters("Provided Arn is not a DynamoDB resource arn: %s", arn)
	}
	name := tableName(arn)
	switch {
	case name != arn && strings.Contains(name, "/"):
		return invalidParameters("Invalid resource arn provided, only table or stream is accepted. Provided "+
			"resource arn: %s", arn)
	case !validName(name), len(name) < minName, len(name) > maxName:
		return exception.Invalid("Invalid TableArn: Invalid ResourceArn provided as input %s", arn)
	}
	return nil
}

// noResource is the answer to an operation that needs an ARN and has none.
func noResource() error { return exception.Invalid("Invalid TableArn") }

// lookupResource returns the table of that ARN.
func (db *DB) lookupResource(arn string) (*tableState, error) {
	if t := db.tables[tableName(arn)]; t != nil {
		return t, nil
	}
	return nil, exception.New(exception.ResourceNotFound,
		"Requested resource not found: ResourcArn: %s not found", arn)
}

func tagResource(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		ResourceArn *string
		Tags        *[]tag
	}](input)
	if err != nil {
		return nil, err
	}
	if r.ResourceArn == nil {
		return nil, noResource()
	}
	var c constraints
	c.required("tags", r.Tags != nil)
	if err := c.err(); err != nil {
		return nil, err
	}
	if err := checkResource(*r.ResourceArn); err != nil {
		return nil, err
	}
	if len(*r.Tags) == 0 {
		return nil, exception.Invalid("Atleast one Tag needs to be provided as Input.")
	}
	if err := checkTags(*r.Tags); err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	t, err := db.lookupResource(*r.ResourceArn)
	if err != nil {
		return nil, err
	}
	return nil, t.putTags(*r.Tags)
}

func untagResource(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct {
		ResourceArn *string
		TagKeys     *[]string
	}](input)
	if err != nil {
		return nil, err
	}
	if r.ResourceArn == nil {
		return nil, noResource()
	}
	var c constraints
	c.required("tagKeys", r.TagKeys != nil)
	if err := c.err(); err != nil {
		return nil, err
	}
	if err := checkResource(*r.ResourceArn); err != nil {
		return nil, err
	}
	if len(*r.TagKeys) == 0 {
		return nil, exception.Invalid("Atleast one Tag Key needs to be provided as Input.")
	}
	for _, key := range *r.TagKeys {
		if !validTagKey(key) {
			return nil, invalidTagKey(key)
		}
	}
	if err := checkTagCount(len(*r.TagKeys)); err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	t, err := db.lookup(*r.ResourceArn)
	if err != nil {
		return nil, err
	}
	for _, key := range *r.TagKeys {
		delete(t.tags, key)
	}
	return nil, nil
}

// listTagsOfResource returns all tags of a table, by key, at once.
func listTagsOfResource(_ context.Context, db *DB, input []byte) ([]byte, error) {
	r, err := decode[struct{ ResourceArn *string }](input)
	if err != nil {
		return nil, err
	}
	if r.ResourceArn == nil {
		return nil, noResource()
	}
	if err := checkResource(*r.ResourceArn); err != nil {
		return nil, err
	}
	db.enter()
	defer db.mu.Unlock()
	t, err := db.lookupResource(*r.ResourceArn)
	if err != nil {
		return nil, err
	}
	tags := []tag{} // never null
	for _, key := range slices.Sorted(maps.Keys(t.tags)) {
		v := t.tags[key]
		tags = append(tags, tag{&key, &v})
	}
	return reply(struct{ Tags []tag }{tags})
}
