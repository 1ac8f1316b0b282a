package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
)

// models has resources whose names are those of models.
const models = `version: 1
revision: 1
owner: acme
go: {package: limits}
stores: [dynamodb, redis]
entities: {user: {}}
resources:
  anthropic.claude-v2:1: {limits: {rpm: {capacity: 50, every: 1m}}}
  meta-llama/Llama-3-8B: {limits: {rpm: {capacity: 70, every: 1m}}}
`

// TestModelNames: the commands take names of resources with capitals, ':', '.' and '/'.
func TestModelNames(t *testing.T) {
	sequential(t)
	file := schemaFile(t, models)
	s, _ := newSession(t, file)
	s.run("override set user-1 anthropic.claude-v2:1 rpm=20", 0,
		`user-1 on anthropic.claude-v2:1: revision 1772366400000, was none
  LIMIT       CAPACITY  BURST  REFILL       FROM
  rpm    was        50     50  50 every 1m  schema
         now        20     20  20 every 1m  user-1
`+takenUp, "")
	for command, want := range map[string]int{
		"override get user-1 anthropic.claude-v2:1":              0,
		"override list meta-llama/Llama-3-8B":                    0,
		"override explain user-1 meta-llama/Llama-3-8B":          0,
		"peek user-1 anthropic.claude-v2:1":                      0,
		"top meta-llama/Llama-3-8B":                              1, // no bucket was used
		"usage user-1 --resource anthropic.claude-v2:1 --plot":   0,
		"top anthropic.claude-v2#1":                              2, // no name
		"usage user-1 --resource anthropic.claude-v2%3A1 --plot": 2,
		"override explain user-1 meta-llama/llama-3-8b":          2, // case counts
	} {
		code, out, errs := sluice(t, start, append(strings.Fields(command), s.flags...)...)
		if code != want {
			t.Errorf("%s: exit code %d, want %d\n%s%s", command, code, want, out, errs)
		}
	}
}

// TestLoadModelNames: --mix and --cost tell the ':' of a name from their own.
func TestLoadModelNames(t *testing.T) {
	file := schemaFile(t, models)
	synctest.Test(t, func(t *testing.T) {
		r, _ := reported(t, "--file", file, "--in-process", "--calls", "100", "--concurrency", "2",
			"--duration", "1m", "--mix", "user:anthropic.claude-v2:1=1", "--mix", "user:meta-llama/Llama-3-8B=2",
			"--cost", "anthropic.claude-v2:1:rpm=2", "--cost", "meta-llama/Llama-3-8B:rpm=3")
		if r.All.Calls != 100 || len(r.Mix) != 2 {
			t.Errorf("%+v", r)
		}
	})
}
