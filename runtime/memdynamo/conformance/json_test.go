package conformance_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// pageWidth is where the text of a reply breaks.
const pageWidth = 120

// volatile are the members that are new in each run, by name, with the form they must have.
var volatile = map[string]*regexp.Regexp{
	"ApproximateCreationDateTime":       regexp.MustCompile(`^1[0-9]{9}(\.[0-9]+)?(E9)?$`),
	"CreationDateTime":                  regexp.MustCompile(`^1[0-9]{9}(\.[0-9]+)?$|^1\.[0-9]+E9$`),
	"CreationRequestDateTime":           regexp.MustCompile(`^1[0-9]{9}(\.[0-9]+)?$`),
	"LastUpdateToPayPerRequestDateTime": regexp.MustCompile(`^1[0-9]{9}(\.[0-9]+)?$`),
	"EndingSequenceNumber":              regexp.MustCompile(`^[0-9]{21,40}$`),
	"IndexArn": regexp.MustCompile(
		`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/.+/index/.+$`),
	"LatestStreamArn": regexp.MustCompile(
		`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/.+/stream/.+$`),
	"LatestStreamLabel":      regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}$`),
	"NextShardIterator":      regexp.MustCompile(`^.{8,}$`),
	"SequenceNumber":         regexp.MustCompile(`^[0-9]{21,40}$`),
	"ShardId":                regexp.MustCompile(`^shardId-.{20,57}$`),
	"ShardIterator":          regexp.MustCompile(`^.{8,}$`),
	"StartingSequenceNumber": regexp.MustCompile(`^[0-9]{21,40}$`),
	"StreamArn": regexp.MustCompile(
		`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/.+/stream/.+$`),
	"StreamLabel": regexp.MustCompile(`^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:.]{8,12}$`),
	"TableArn":    regexp.MustCompile(`^arn:aws:dynamodb:[a-z0-9-]+:[0-9]{12}:table/.+$`),
	"awsRegion":   regexp.MustCompile(`^[a-z]+(-[a-z]+-[0-9])?$`),
	"eventID":     regexp.MustCompile(`^[0-9a-f-]{32,36}$`),
}

// optional are members that AWS and DynamoDB Local do not both have and that say nothing about behaviour.
var optional = []string{"TableId", "WarmThroughput", "LastIncreaseDateTime", "LastDecreaseDateTime"}

// unordered are the lists whose order means nothing.
var unordered = []string{
	"SS", "NS", "BS", "AttributeDefinitions", "GlobalSecondaryIndexes", "LocalSecondaryIndexes",
	"NonKeyAttributes",
	"ConsumedCapacity",
}

// parseJSON reads one JSON value, its numbers as they are written.
func parseJSON(text []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, err
	}
	if decoder.More() {
		return nil, fmt.Errorf("more than one JSON value")
	}
	return tree, nil
}

// canonical returns a tree that is equal for replies that mean the same.
func canonical(operation string, tree any) any {
	if members, ok := tree.(map[string]any); ok {
		canonicalReply(operation, members)
	}
	return canonicalValue("", tree)
}

// canonicalReply changes what only the top of a reply has.
func canonicalReply(operation string, members map[string]any) {
	if code, ok := members["__type"].(string); ok {
		// clients read what follows the #, and either spelling of message
		members["__type"] = code[strings.LastIndexByte(code, '#')+1:]
		if message, ok := members["Message"]; ok {
			members["message"] = message
			delete(members, "Message")
		}
	}
	if items, ok := members["Items"].([]any); ok && operation == "Scan" {
		sortTrees(items)
	}
	if tables, ok := members["Responses"].(map[string]any); ok {
		for _, items := range tables {
			if items, ok := items.([]any); ok {
				sortTrees(items)
			}
		}
	}
}

func canonicalValue(name string, tree any) any {
	switch tree := tree.(type) {
	case map[string]any:
		for _, member := range slices.Collect(maps.Keys(tree)) {
			tree[member] = canonicalValue(member, tree[member])
		}
		for _, member := range optional {
			delete(tree, member)
		}
		return tree
	case []any:
		for i := range tree {
			tree[i] = canonicalValue("", tree[i])
		}
		if slices.Contains(unordered, name) {
			sortTrees(tree)
		}
		return tree
	case json.Number:
		if pattern, ok := volatile[name]; ok && pattern.MatchString(tree.String()) {
			return "<" + name + ">"
		}
		if f, err := tree.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(f, 'f', -1, 64))
		}
		return tree
	case string:
		if pattern, ok := volatile[name]; ok && pattern.MatchString(tree) {
			return "<" + name + ">"
		}
		return tree
	default:
		return tree
	}
}

func sortTrees(list []any) {
	slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(oneLine(a), oneLine(b)) })
}

// oneLine is a tree as text, its members by name.
func oneLine(tree any) string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(tree); err != nil {
		return err.Error() // trees come from parseJSON: nothing in them fails
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// pretty is a tree as text of at most pageWidth columns where that can be.
func pretty(tree any, indent string) string {
	flat := oneLine(tree)
	if len(indent)+len(flat) <= pageWidth {
		return flat
	}
	deeper := indent + " "
	switch tree := tree.(type) {
	case map[string]any:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(tree)) {
			members = append(members, deeper+oneLine(name)+":"+pretty(tree[name], deeper))
		}
		return "{\n" + strings.Join(members, ",\n") + "\n" + indent + "}"
	case []any:
		var elements []string
		for _, element := range tree {
			elements = append(elements, deeper+pretty(element, deeper))
		}
		return "[\n" + strings.Join(elements, ",\n") + "\n" + indent + "]"
	default:
		return flat
	}
}
