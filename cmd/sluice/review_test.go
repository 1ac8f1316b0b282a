package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/sluice-go/sluice/internal/test/longform"
)

// TestReview runs the action sluice-review on local repositories, against an API of comments in this process.
func TestReview(t *testing.T) {
	longform.NoRace(t, "the action and its commands are processes of their own")
	for _, tool := range []string{"bash", "curl", "git", "jq"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("no %s on PATH, which the action sluice-review needs", tool)
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/review",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Condition:           long,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitCode, "copy": copyFile, "comments": listComments, "contained": contained,
			"github": steerGitHub,
		},
		Setup: setUpReview,
	})
}

// setUpReview gives a script what GitHub gives the action in a run of pull request 7 of acme/api.
func setUpReview(env *testscript.Env) error {
	script, err := os.ReadFile("../../.github/actions/sluice-review/review.sh")
	if err != nil {
		return err
	}
	if err := os.WriteFile(env.WorkDir+"/review.sh", script, 0o600); err != nil {
		return err
	}
	hub := &gitHub{}
	server := httptest.NewServer(hub)
	env.Defer(server.Close)
	env.Values[hubKey{}] = hub
	for name, value := range map[string]string{
		"GITHUB_API_URL": server.URL, "GITHUB_REPOSITORY": "acme/api", "GITHUB_EVENT_NAME": "pull_request",
		"GITHUB_STEP_SUMMARY": env.WorkDir + "/summary.md", "PULL_NUMBER": "7", "PULL_BASE": "main",
		"PULL_REPOSITORY": "acme/api", "REVIEW_COMMAND": "sluice", "REVIEW_FAIL_ON": "breaking, drift",
		"REVIEW_TOKEN": "secret", "REVIEW_AUTHOR": robot, "GIT_CONFIG_GLOBAL": env.WorkDir + "/gitconfig",
		"GIT_CONFIG_NOSYSTEM": "1",
	} {
		env.Setenv(name, value)
	}
	return os.WriteFile(env.WorkDir+"/gitconfig", []byte("[user]\nname = a\nemail = a@example.com\n"+
		"[init]\ndefaultBranch = main\n[advice]\ndetachedHead = false\n"), 0o600)
}

// robot is the login of the token's comments.
const robot = "github-actions[bot]"

// gitHub is the part of GitHub's API that has to do with comments.
type gitHub struct {
	mu      sync.Mutex
	list    []comment
	refuses int // the status of all replies, if not 0
	writes  []string
}

type comment struct {
	ID   int    `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

type hubKey struct{}

// ServeHTTP answers as GitHub does: it wants the token, pages lists, and bounds a body's length.
func (g *gitHub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	defer g.mu.Unlock()
	status, reply := g.serve(r)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply)
}

func (g *gitHub) serve(r *http.Request) (status int, reply any) {
	if g.refuses != 0 {
		return g.refuses, message("Resource not accessible by integration")
	}
	if got := r.Header.Get("Authorization"); got != "Bearer secret" {
		return http.StatusUnauthorized, message("Bad credentials")
	}
	var sent comment
	if r.Method != http.MethodGet {
		g.writes = append(g.writes, r.Method+" "+r.URL.Path)
		if err := json.NewDecoder(r.Body).Decode(&sent); err != nil {
			return http.StatusBadRequest, message("Problems parsing JSON")
		}
		if n := utf8.RuneCountInString(sent.Body); n > 65_536 {
			return http.StatusUnprocessableEntity, message("Body is too long")
		}
	}
	const all, one = "/repos/acme/api/issues/7/comments", "/repos/acme/api/issues/comments/"
	id, _ := strconv.Atoi(strings.TrimPrefix(r.URL.Path, one))
	switch {
	case r.Method == http.MethodGet && r.URL.Path == all:
		page, _ := strconv.Atoi(r.URL.Query().Get("page"))
		size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
		some := g.list[min((page-1)*size, len(g.list)):min(page*size, len(g.list))]
		return http.StatusOK, append([]comment{}, some...)
	case r.Method == http.MethodPost && r.URL.Path == all:
		return http.StatusCreated, g.add(robot, sent.Body)
	case r.Method == http.MethodPatch && id > 0 && id <= len(g.list):
		g.list[id-1].Body = sent.Body
		return http.StatusOK, g.list[id-1]
	}
	return http.StatusNotFound, message("Not Found")
}

func message(text string) map[string]string { return map[string]string{"message": text} }

// add appends a comment. Its id is its number.
func (g *gitHub) add(login, body string) comment {
	c := comment{ID: len(g.list) + 1, Body: body}
	c.User.Login = login
	g.list = append(g.list, c)
	return c
}

// steerGitHub is `github refuse STATUS`, which ends with status 0, and `github comment LOGIN FILE N`:
// somebody writes N comments.
func steerGitHub(ts *testscript.TestScript, _ bool, args []string) {
	g, _ := ts.Value(hubKey{}).(*gitHub)
	g.mu.Lock()
	defer g.mu.Unlock()
	n, err := strconv.Atoi(args[len(args)-1])
	ts.Check(err)
	switch args[0] {
	case "refuse":
		g.refuses = n
	case "comment":
		for range n {
			g.add(args[1], ts.ReadFile(args[2]))
		}
	default:
		ts.Fatalf("github %s: want refuse or comment", args[0])
	}
}

// listComments is `comments N POSTS PATCHES`: that many comments there are, after that many writes. It writes
// the last comment of the robot to comment.md.
func listComments(ts *testscript.TestScript, _ bool, args []string) {
	g, _ := ts.Value(hubKey{}).(*gitHub)
	g.mu.Lock()
	defer g.mu.Unlock()
	writes := strings.Join(g.writes, "\n") + "\n"
	got := fmt.Sprint(len(g.list), strings.Count(writes, "POST "), strings.Count(writes, "PATCH "))
	if want := strings.Join(args, " "); got != want {
		ts.Fatalf("comments, POSTs and PATCHes: %s, want %s; writes:\n%s", got, want, writes)
	}
	for _, c := range g.list {
		if c.User.Login == robot {
			ts.Check(os.WriteFile(ts.MkAbs("comment.md"), []byte(c.Body), 0o600))
		}
	}
}

// contained is `contained FILE`: all that strangers wrote stands in fences. `! contained FILE` is for
// controls.
func contained(ts *testscript.TestScript, neg bool, args []string) {
	wrong := escaped(ts.ReadFile(args[0]))
	switch {
	case neg && wrong == "":
		ts.Fatalf("nothing of %s is outside a fence", args[0])
	case !neg && wrong != "":
		ts.Fatalf("%s: outside a fence: %q", args[0], wrong)
	}
}

var (
	opening = regexp.MustCompile("^ {0,3}(`{3,})[^`]*$")
	// ours are the lines that the action writes outside fences.
	ours = regexp.MustCompile("^(|<!-- sluice-review -->|### sluice: [a-z0-9, ]+|\\|[-:|]+\\|" +
		"|\\| schema \\| breaking changes \\| generated files \\||\\| `[\\w./ -]+` \\| [a-z0-9 ]+ \\| [a-z ]+ \\|" +
		"|<details( open)?><summary>(<code>[\\w./ -]+</code>: )?[\\w.,: ]*(<code>sluice generate</code> [a-z ]+)?" +
		"</summary>|</details>|Cut: \\d+ of \\d+ lines .*" +
		"|More is left out, since GitHub bounds the length of a comment\\." +
		"|Compared: `[0-9a-f]{12}` with `[0-9a-f]{12}`\\." +
		"|The first 20 of \\d+ schemas are listed\\." +
		"|Undo a breaking change, or ignore it with a reason \\(`sluice breaking --help`\\)\\." +
		"|Run `sluice generate` and commit what it writes\\." +
		"|This does not fail the check: `fail-on` leaves it out\\.)$")
)

// escaped returns the first line of Markdown outside its fences that the action does not write, or an open
// fence. It reads fences as CommonMark does: one ends at as many backticks as began it, at least.
func escaped(markdown string) string {
	ticks := ""
	for line := range strings.FieldsFuncSeq(markdown, func(r rune) bool { return r == '\n' || r == '\r' }) {
		begun := opening.FindStringSubmatch(line)
		switch {
		case ticks == "" && begun != nil:
			ticks = begun[1]
		case ticks == "" && !ours.MatchString(line):
			return line
		case ticks != "" && begun != nil && len(begun[1]) >= len(ticks) && strings.Trim(line, " `\t") == "":
			ticks = ""
		}
	}
	return ticks
}
