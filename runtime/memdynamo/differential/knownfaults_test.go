package differential_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// This file holds known differences in what Local and the service refuse: Local refuses at another time, for
// another one of several reasons, or not at all.

const validation = "ValidationException"

// amendConstraints takes our exception if it is one about a single parameter's form.
func amendConstraints(_ operation, truth, ours []reply) {
	for i := range min(len(truth), len(ours)) {
		if o := ours[i]; o.Code == validation && constraint.MatchString(o.Message) {
			truth[i] = o
		}
	}
}

var constraint = regexp.MustCompile(`^\d+ validation errors? detected: `)

// fallen takes our refusal where Local had another reply: an exception of that code, or any if it is empty.
func fallen(code, aws string) func(operation, []reply, []reply) {
	mine := regexp.MustCompile(aws)
	return func(_ operation, truth, ours []reply) {
		o := ours[0]
		if (code == "" || truth[0].Code == code) && o.Code == validation && mine.MatchString(o.Message) {
			truth[0] = o
		}
	}
}

// amendFailure takes our reply where Local has none.
func amendFailure(_ operation, truth, ours []reply) {
	if truth[0].Code == "InternalFailure" {
		truth[0] = ours[0]
	}
}

// amendWhichFault takes our fault where it is one of another family than Local's.
func amendWhichFault(_ operation, truth, ours []reply) {
	for i := range min(len(truth), len(ours)) {
		theirs, mine := family(truth[i].Message), family(ours[i].Message)
		if theirs != "" && mine != "" && theirs != mine {
			truth[i] = ours[i]
		}
	}
}

// family is the sort of fault that a message is about, or empty if it is none of these.
func family(message string) string {
	for _, f := range faultFamilies {
		if f.messages.MatchString(message) {
			return f.name
		}
	}
	return ""
}

var faultFamilies = []struct {
	name     string
	messages *regexp.Regexp
}{
	{"expression", regexp.MustCompile(`^Invalid \w+Expression: `)},
	{"placeholder",
		regexp.MustCompile(`^ExpressionAttribute(Names|Values) |in ExpressionAttribute(Names|Values) unused`)},
	{"key", regexp.MustCompile(
		`number of conditions on the keys|required keys was not given|Type mismatch for key|` +
			`Invalid attribute value type|AttributeValue for a key attribute cannot contain|primary key values must ` +
			`be under|` +
			`element does not match the schema|Size limit exceeded|has exceeded the (maximum )?size limit`)},
	{"table", regexp.MustCompile(
		`non-existent table|Requested resource not found|not have the specified index`)},
	{"twice", regexp.MustCompile(`multiple operations on one item|keys contains duplicates`)},
	{"value", regexp.MustCompile(
		`into a number|to a numeric value|contains duplicates|may not be empty|must have the value of true|` +
			`Number (over|under)flow|significant digits|precision up to 38|Nesting Levels|Item size has exceeded`)},
	{"update", updateFault},
	{"condition", regexp.MustCompile(`Condition parameter type does not match schema type`)},
	{"index", regexp.MustCompile(`index \w+ does not project`)},
	{"segment", regexp.MustCompile(`^The (Total)?Segments? parameter|segments? (is|must)|at 'segment'`)},
}

// amendValueInPath takes our syntax error where there is a value in a path.
func amendValueInPath(o operation, truth, ours []reply) {
	if u := ours[0]; u.Code == validation && strings.Contains(u.Message, "Syntax error; token: \":") &&
		valueInPath.Match(marshal(o)) {
		truth[0] = u
	}
}

var valueInPath = regexp.MustCompile(`\. ?:\w`)

// ours takes our message where Local has another one of the same exception, if both look as they should.
func ours(code, local, aws string) func(operation, []reply, []reply) {
	theirs, mine := regexp.MustCompile(local), regexp.MustCompile(aws)
	return func(_ operation, truth, ours []reply) {
		t, o := &truth[len(truth)-1], ours[len(ours)-1]
		if t.Code == code && o.Code == code && theirs.MatchString(t.Message) && mine.MatchString(o.Message) {
			t.Message = o.Message
		}
	}
}

// acceptedBut takes our refusal where Local accepts, if it is one of these.
func acceptedBut(messages string) func(operation, []reply, []reply) {
	refusal := regexp.MustCompile(messages)
	return func(_ operation, truth, ours []reply) {
		o := ours[0]
		accepted := truth[0].Code == "" || truth[0].Code == "TransactionCanceledException"
		if accepted &&
			(o.Code == validation && refusal.MatchString(o.Message) ||
				refusal.MatchString(textOf(o.Body["CancellationReasons"]))) {
			truth[0] = o
		}
	}
}

// amendCancelled makes a cancelled transaction of the error that is among our reasons.
func amendCancelled(_ operation, truth, ours []reply) {
	t, o := &truth[0], ours[0]
	reasons, _ := o.Body["CancellationReasons"].([]any)
	if o.Code != "TransactionCanceledException" || t.Code != validation && len(t.Body) > 0 {
		return
	}
	for _, reason := range reasons {
		if fields, _ := reason.(map[string]any); fields["Code"] == "ValidationError" &&
			alike(t.Message, fmt.Sprint(fields["Message"])) {
			*t = o
			return
		}
	}
}

// amendShortReasons takes our reasons where Local has but one, if it is among them.
func amendShortReasons(_ operation, truth, ours []reply) {
	theirs, _ := truth[0].Body["CancellationReasons"].([]any)
	mine, _ := ours[0].Body["CancellationReasons"].([]any)
	if len(theirs) != 1 || len(mine) < 2 {
		return
	}
	only, _ := theirs[0].(map[string]any)
	for _, reason := range mine {
		fields, _ := reason.(map[string]any)
		if only["Code"] == "ValidationError" && fields["Code"] == "ValidationError" &&
			sameError(fmt.Sprint(only["Message"]), fmt.Sprint(fields["Message"])) {
			truth[0] = ours[0]
		}
	}
}

// amendKeysFirst takes our only reason, that an action does not fit its table, in two cases. Local has it as
// its first ValidationError, beside other reasons. Or Local refuses for a fault of another family, such
// as an update that cannot be done.
func amendKeysFirst(_ operation, truth, ours []reply) {
	theirs, mine := reasonsOf(truth[0]), reasonsOf(ours[0])
	first, alone := onlyReason(mine)
	if !alone || !mine[first].isFault() || !misfit.MatchString(mine[first].Message) {
		return
	}
	local, aws := truth[0].Message, mine[first].Message
	if len(theirs) == 0 && truth[0].Code == validation && family(local) != "" && family(local) != family(aws) &&
		!sameError(local, aws) {
		truth[0] = ours[0]
	}
	others := len(theirs) == len(mine) && !slices.EqualFunc(theirs, mine, reason.hasCodeOf)
	if others && first == slices.IndexFunc(theirs, reason.isFault) &&
		sameError(theirs[first].Message, mine[first].Message) {
		truth[0] = ours[0]
	}
}

// misfit is our message for an action that does not fit its table, whatever its item is.
var misfit = regexp.MustCompile(`^The provided key element does not match the schema$|` +
	`^One or more parameter values were invalid: (Missing the key |Type mismatch for (key|Index Key) |` +
	`Size of hashkey |Aggregated size of all range keys |Cannot update attribute )|` +
	`^Key attributes must be scalars; `)

// amendUpdatePaths takes our fault of a path in an update where Local's condition has failed.
func amendUpdatePaths(o operation, truth, ours []reply) {
	fallen("ConditionalCheckFailedException", updatePath.String())(o, truth, ours)
	theirs, mine := reasonsOf(truth[0]), reasonsOf(ours[0])
	first, alone := onlyReason(mine)
	if alone && len(theirs) == len(mine) && updatePath.MatchString(mine[first].Message) &&
		theirs[first].Code == "ConditionalCheckFailed" && !slices.ContainsFunc(theirs, reason.isFault) {
		truth[0] = ours[0]
	}
}

var updatePath = regexp.MustCompile(
	`^One or more parameter values were invalid: Cannot update attribute \w+\. This attribute is part of the ` +
		`key$|^Key attributes must be scalars; `)

// onlyReason returns the place of the only reason that speaks against its action, if there is just one.
func onlyReason(reasons []reason) (place int, alone bool) {
	place = slices.IndexFunc(reasons, reason.speaks)
	return place, place >= 0 && !slices.ContainsFunc(reasons[place+1:], reason.speaks)
}

// reason is why an action of a cancelled transaction was not done.
type reason struct{ Code, Message string }

// speaks reports whether it speaks against the action.
func (r reason) speaks() bool { return r.Code != "None" }

func (r reason) isFault() bool { return r.Code == "ValidationError" }

func (r reason) hasCodeOf(other reason) bool { return r.Code == other.Code }

// reasonsOf returns the reasons of a cancelled transaction, in the order of its actions, and else nil.
func reasonsOf(r reply) []reason {
	list, _ := r.Body["CancellationReasons"].([]any)
	var reasons []reason
	for _, each := range list {
		fields, _ := each.(map[string]any)
		code, _ := fields["Code"].(string)
		message, _ := fields["Message"].(string)
		reasons = append(reasons, reason{code, message})
	}
	return reasons
}

// amendUpdateFaults takes our fault of an update of several actions where Local has another of the same sort.
func amendUpdateFaults(o operation, truth, ours []reply) {
	in, ok := o.input.(*dynamodb.UpdateItemInput)
	if t, u := truth[0], ours[0]; ok && severalActions(in.UpdateExpression) &&
		updateFault.MatchString(t.Message) && updateFault.MatchString(u.Message) {
		truth[0] = u
	}
}

// severalActions tells whether an update has more than one.
func severalActions(update *string) bool {
	return strings.Contains(aws.ToString(update), ",") || len(clause.FindAllString(aws.ToString(update), 2)) > 1
}

var (
	clause      = regexp.MustCompile(`(?i)\b(SET|REMOVE|ADD|DELETE) `)
	updateFault = regexp.MustCompile(
		`^(The document path provided in the update expression is invalid for update|` +
			`The provided expression refers to an attribute that does not exist in the item|` +
			`An operand in the update expression has an incorrect data type|` +
			`.*Type mismatch for Index Key .*|.* attempted to update a secondary index key .*|` +
			`Number overflow. .*|DynamoDB only supports precision up to 38 digits)$`)
)

// amendReasons takes our words for the reasons of a cancelled transaction, where Local's mean the same.
func amendReasons(_ operation, truth, ours []reply) {
	theirs, _ := truth[0].Body["CancellationReasons"].([]any)
	mine, _ := ours[0].Body["CancellationReasons"].([]any)
	for i := range min(len(theirs), len(mine)) {
		their, _ := theirs[i].(map[string]any)
		our, _ := mine[i].(map[string]any)
		local, aws := fmt.Sprint(their["Message"]), fmt.Sprint(our["Message"])
		if their["Code"] == our["Code"] && their["Message"] != nil && (local == aws+"." || sameError(local, aws)) {
			their["Message"] = our["Message"]
		}
	}
}

// alike tells whether the messages are of the same error, or of two of which either may be reported.
func alike(local, aws string) bool {
	return sameError(local, aws) || family(local) != "" && family(aws) != "" && family(local) != family(aws)
}

// sameError tells whether one message is the other, or a wording of it.
func sameError(local, aws string) bool {
	truth, ours := []reply{{Code: validation, Message: local}}, []reply{{Code: validation, Message: aws}}
	for _, w := range wordings {
		w.amend()(operation{}, truth, ours)
	}
	return truth[0].Message == aws || updateFault.MatchString(local) && updateFault.MatchString(aws)
}
