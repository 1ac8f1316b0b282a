package infra

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// Place is where a table is, and what belongs to it.
type Place struct {
	Table   string // its name, or its ARN, which says the rest
	Region  string // empty for any
	Account string // empty for any

	Namespace string // of the table, for whose items alone the roles are; empty for the default one

	Snapshots string // where regions publish, s3://bucket/prefix; empty for nowhere
}

// Names of regions and accounts.
var (
	regionForm  = regexp.MustCompile(`^[a-z]{2,4}(-[a-z]+)+-[0-9]+$`)
	accountForm = regexp.MustCompile(`^[0-9]{12}$`)
)

// arn returns the table's ARN, in which what is not known is a '*'.
func (p Place) arn() (string, error) {
	name, ok := operator.TableName(p.Table)
	switch {
	case !ok:
		return "", errors.New(operator.WrongTable(p.Table))
	case p.Region != "" && !regionForm.MatchString(p.Region):
		return "", fmt.Errorf("region %q is not the name of an AWS region: pass one, such as eu-west-1", p.Region)
	case p.Account != "" && !accountForm.MatchString(p.Account):
		return "", fmt.Errorf("account %q is not an AWS account: pass its 12 digits", p.Account)
	case name != p.Table && (p.Region != "" || p.Account != ""):
		return "", fmt.Errorf("table %q is an ARN, which has a region and an account: leave the others out",
			p.Table)
	case name != p.Table:
		return p.Table, nil
	}
	region, account := p.Region, p.Account
	if region == "" {
		region = "*"
	}
	if account == "" {
		account = "*"
	}
	return fmt.Sprintf("arn:%s:dynamodb:%s:%s:table/%s", partition(p.Region), region, account, name), nil
}

// partition returns the part of AWS that a region is in. The isolated ones have the letter that tells them
// apart at the end of the name's second word.
func partition(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "aws-cn"
	case strings.HasPrefix(region, "us-gov-"):
		return "aws-us-gov"
	case strings.HasPrefix(region, "eusc-"):
		return "aws-eusc"
	}
	_, rest, _ := strings.Cut(region, "-")
	word, _, _ := strings.Cut(rest, "-")
	switch letter, isolated := strings.CutPrefix(word, "iso"); {
	case isolated && letter == "":
		return "aws-iso"
	case isolated:
		return "aws-iso-" + letter
	}
	return "aws"
}

// document is a policy as IAM takes it.
type document struct {
	Version   string
	Statement []documentStatement
}

type documentStatement struct {
	Sid       string
	Effect    string
	Action    []string
	Resource  string
	Condition map[string]map[string][]string `json:",omitempty"`
}

// Policy returns what a role may do with the table at a place, as a policy document. The error says what is
// wrong with the place or the role.
func Policy(r Role, at Place) ([]byte, error) {
	doc, err := documentOf(r, at)
	if err != nil {
		return nil, err
	}
	return indented(doc)
}

// Policies returns the documents of all roles, as one object whose keys are the roles. Without Snapshots,
// RegionSync is not among them.
func Policies(at Place) ([]byte, error) {
	all := map[Role]document{} // written in the order of their names
	for _, r := range Roles() {
		if r == RegionSync && at.Snapshots == "" {
			continue
		}
		doc, err := documentOf(r, at)
		if err != nil {
			return nil, err
		}
		all[r] = doc
	}
	return indented(all)
}

func documentOf(name Role, at Place) (document, error) {
	r, err := lookup(name)
	if err != nil {
		return document{}, err
	}
	arn, err := at.arn()
	if err != nil {
		return document{}, err
	}
	prefix := ""
	if at.Namespace != "" {
		if err := operator.CheckNamespace(at.Namespace); err != nil {
			return document{}, err
		}
		prefix = at.Namespace + "#"
	}
	resources := map[where]string{table: arn, indexes: arn + "/index/*", streams: arn + "/stream/*",
		everything: "*"}
	if r.published() {
		at, err := placeOf(at.Snapshots)
		if err != nil {
			return document{}, err
		}
		part := strings.SplitN(arn, ":", 3)[1]
		resources[objects], resources[bucket] = at.objects(part), at.bucket(part)
	}
	doc := document{Version: "2012-10-17"}
	for _, s := range r.Statements {
		if s.Whole && prefix != "" {
			continue
		}
		out := documentStatement{Sid: s.Sid, Effect: "Allow", Action: prefixed(s), Resource: resources[s.On]}
		if s.Leading != nil {
			leading := make([]string, len(s.Leading))
			for i, key := range s.Leading {
				leading[i] = prefix + key
			}
			out.Condition = map[string]map[string][]string{leadingOperator: {leadingKey: leading}}
		}
		doc.Statement = append(doc.Statement, out)
	}
	return doc, nil
}

// The condition on hash keys. A request of many items is allowed if all their keys are.
const (
	leadingOperator = "ForAllValues:StringLike"
	leadingKey      = "dynamodb:LeadingKeys"
)

// prefixed returns s's actions as policies name them.
func prefixed(s statement) []string {
	all := make([]string, len(s.Actions))
	for i, action := range s.Actions {
		all[i] = s.On.service() + ":" + action
	}
	return all
}

// indented writes v as JSON for people.
func indented(v any) ([]byte, error) {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(v)
	return out.Bytes(), err
}
