package conformance_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// script is one file of testdata: steps that run in order on tables of their own. See README.md beside this
// file.
type script struct {
	steps []*step
	tail  []string // what stands after the last step
}

// step is one request and the replies to it.
type step struct {
	line       int      // where it begins
	lead       []string // blank lines and comments before it
	operation  string
	directives []string // each without its @
	request    string
	want       *reply // nil while it is not recorded
	local      *reply // what DynamoDB Local says where it differs from AWS
}

// reply is the expectation of one reply.
type reply struct {
	status int
	reason string // why DynamoDB Local's differs, and the source
	body   string // JSON, or anyBody
}

// anyBody expects the status alone.
const anyBody = "*"

// on returns the reply to expect of an engine.
func (s *step) on(local bool) *reply {
	if local && s.local != nil {
		return s.local
	}
	return s.want
}

// readScript reads a file of testdata.
func readScript(path string) (*script, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	s, err := parseScript(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s:%w", path, err)
	}
	return s, nil
}

// parseScript reads a script. An error begins with the number of its line.
func parseScript(text string) (*script, error) {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	var parsed script
	for at := 0; at < len(lines); {
		begin := at
		for at < len(lines) && (lines[at] == "" || strings.HasPrefix(lines[at], "#")) {
			at++
		}
		if at == len(lines) {
			parsed.tail = lines[begin:at]
			break
		}
		s := &step{line: at + 1, lead: lines[begin:at]}
		operation, found := strings.CutPrefix(lines[at], "> ")
		if !found {
			return nil, fmt.Errorf("%d: want a comment or > OPERATION, not %q", at+1, lines[at])
		}
		s.operation = operation
		at++
		for ; at < len(lines) && strings.HasPrefix(lines[at], "@"); at++ {
			s.directives = append(s.directives, lines[at][1:])
		}
		s.request, at = block(lines, at)
		if err := s.parseReplies(lines, &at); err != nil {
			return nil, err
		}
		parsed.steps = append(parsed.steps, s)
	}
	return &parsed, nil
}

// parseReplies reads the replies that begin at line *at.
func (s *step) parseReplies(lines []string, at *int) error {
	for *at < len(lines) && strings.HasPrefix(lines[*at], "< ") {
		line := *at
		head, isLocal := strings.CutPrefix(lines[line][2:], "local ")
		status, reason, _ := strings.Cut(head, " ")
		code, err := strconv.Atoi(status)
		if err != nil {
			return fmt.Errorf("%d: %q is no status", line+1, status)
		}
		r := &reply{status: code, reason: reason}
		r.body, *at = block(lines, line+1)
		switch {
		case !isLocal && s.want == nil:
			s.want = r
		case isLocal && s.want != nil && s.local == nil && s.want.reason != "" && reason == "":
			s.local = r
		default:
			return fmt.Errorf("%d: want one reply, or one with a reason and then < local", line+1)
		}
	}
	if s.want != nil && s.local == nil && s.want.reason != "" {
		return fmt.Errorf("%d: a reason, but no < local", s.line)
	}
	return nil
}

// block returns the lines from at up to the next blank line or reply, and where it ended.
func block(lines []string, at int) (string, int) {
	begin := at
	for at < len(lines) && lines[at] != "" && !strings.HasPrefix(lines[at], "< ") {
		at++
	}
	return strings.Join(lines[begin:at], "\n"), at
}

// String is the script's text: what parseScript reads.
func (s *script) String() string {
	var b strings.Builder
	put := func(lines ...string) {
		for _, line := range lines {
			b.WriteString(line)
			b.WriteByte('\n')
		}
	}
	for _, step := range s.steps {
		put(step.lead...)
		put("> " + step.operation)
		for _, directive := range step.directives {
			put("@" + directive)
		}
		if step.request != "" {
			put(step.request)
		}
		if step.want != nil {
			put(strings.TrimRight(fmt.Sprintf("< %d %s", step.want.status, step.want.reason), " "), step.want.body)
		}
		if step.local != nil {
			put(fmt.Sprintf("< local %d", step.local.status), step.local.body)
		}
	}
	put(s.tail...)
	return b.String()
}
