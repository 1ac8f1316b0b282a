// Package forge holds what GitHub reads to rules: workflows, the action sluice-review, issue forms. It reads
// the files as GitHub does, and asks nobody.
package forge

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// workflow is the part of a workflow that the rules are about.
type workflow struct {
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group string `yaml:"group"`
	} `yaml:"concurrency"`
	Jobs map[string]job `yaml:"jobs"`
}

type job struct {
	Timeout int    `yaml:"timeout-minutes"`
	Steps   []step `yaml:"steps"`
}

type step struct {
	Uses string            `yaml:"uses"`
	Run  string            `yaml:"run"`
	With map[string]string `yaml:"with"`
}

var (
	pinned  = regexp.MustCompile(`(?m)^\s*- uses: (?:\./\S+|[\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+)$`)
	uses    = regexp.MustCompile(`(?m)^\s*(?:- )?uses: .*$`)
	targets = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	made    = regexp.MustCompile(`\bmake ([a-z][a-z0-9-]*)`)
)

// CheckWorkflow returns which rules a workflow breaks. makefile is the text of the Makefile whose targets it
// calls.
func CheckWorkflow(text, makefile string) (wrong []string) {
	var w workflow
	if err := yaml.Unmarshal([]byte(text), &w); err != nil {
		return []string{err.Error()}
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		wrong = append(wrong, "permissions at the top: want contents: read alone; a job that needs more says so")
	}
	if w.Concurrency.Group == "" {
		wrong = append(wrong, "concurrency has no group: two runs for one ref may meet")
	}
	if strings.Contains(text, "pull_request_target") {
		wrong = append(wrong, "pull_request_target gives code of strangers a token")
	}
	for _, line := range uses.FindAllString(text, -1) {
		if !pinned.MatchString(line) {
			wrong = append(wrong, strings.TrimSpace(line)+": pin the full commit, with `# v1.2.3` behind it")
		}
	}
	for name, j := range w.Jobs {
		if j.Timeout == 0 {
			wrong = append(wrong, name+": no timeout-minutes")
		}
		for _, s := range j.Steps {
			wrong = append(wrong, checkStep(name, s, makefile)...)
		}
	}
	slices.Sort(wrong)
	return wrong
}

func checkStep(name string, s step, makefile string) (wrong []string) {
	if strings.Contains(s.Run, "${{") {
		wrong = append(wrong, name+": run has an expression, which a name of a branch may end: pass it by env")
	}
	if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != "false" {
		wrong = append(wrong, name+": checkout leaves its token behind: set persist-credentials: false")
	}
	for _, m := range made.FindAllStringSubmatch(s.Run, -1) {
		has := func(target []string) bool { return target[1] == m[1] }
		if !slices.ContainsFunc(targets.FindAllStringSubmatch(makefile, -1), has) {
			wrong = append(wrong, fmt.Sprintf("%s: the Makefile has no target %s", name, m[1]))
		}
	}
	return wrong
}

// action is the part of action.yml that the rules are about.
type action struct {
	Inputs map[string]struct {
		Description string `yaml:"description"`
	} `yaml:"inputs"`
	Runs struct {
		Steps []struct {
			Env   map[string]string `yaml:"env"`
			Shell string            `yaml:"shell"`
			Run   string            `yaml:"run"`
		} `yaml:"steps"`
	} `yaml:"runs"`
}

var fact = regexp.MustCompile(`\$\{?((?:REVIEW|PULL)_[A-Z_]+)`)

// CheckAction returns what does not fit between action.yml and the script that it runs. Each input has to
// reach the script, and the script reads no other variables of the action.
func CheckAction(text, script string) (wrong []string) {
	var a action
	if err := yaml.Unmarshal([]byte(text), &a); err != nil {
		return []string{err.Error()}
	}
	set := map[string]bool{}
	var values []string
	for _, s := range a.Runs.Steps {
		if s.Shell != "bash" || strings.Contains(s.Run, "${{") {
			wrong = append(wrong, "a step wants shell: bash, and no expression in run")
		}
		for name, value := range s.Env {
			set[name] = true
			values = append(values, value)
		}
	}
	read := map[string]bool{}
	for _, m := range fact.FindAllStringSubmatch(script, -1) {
		read[m[1]] = true
	}
	for name, input := range a.Inputs {
		if !slices.Contains(values, "${{ inputs."+name+" }}") {
			wrong = append(wrong, "input "+name+" reaches no variable")
		}
		if input.Description == "" {
			wrong = append(wrong, "input "+name+" has no description")
		}
	}
	for name := range set {
		if !read[name] {
			wrong = append(wrong, name+" is set, and the script does not read it")
		}
	}
	for name := range read {
		if !set[name] {
			wrong = append(wrong, name+" is read, and action.yml does not set it")
		}
	}
	slices.Sort(wrong)
	return wrong
}

// form is an issue form.
type form struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Body        []struct {
		Type       string `yaml:"type"`
		ID         string `yaml:"id"`
		Attributes struct {
			Label   string   `yaml:"label"`
			Value   string   `yaml:"value"`
			Options []string `yaml:"options"`
		} `yaml:"attributes"`
	} `yaml:"body"`
}

// CheckForm returns what GitHub would not show of an issue form.
func CheckForm(text string) (wrong []string) {
	var f form
	if err := yaml.Unmarshal([]byte(text), &f); err != nil {
		return []string{err.Error()}
	}
	if f.Name == "" || f.Description == "" || len(f.Body) == 0 {
		wrong = append(wrong, "a form needs name, description and body")
	}
	ids := map[string]bool{}
	for i, field := range f.Body {
		at := fmt.Sprintf("body %d: ", i+1)
		a := field.Attributes
		switch field.Type {
		case "markdown":
			if a.Value == "" {
				wrong = append(wrong, at+"no value")
			}
			continue
		case "input", "textarea":
		case "dropdown":
			if len(a.Options) == 0 {
				wrong = append(wrong, at+"no options")
			}
		default:
			wrong = append(wrong, at+"type "+field.Type+" is not known")
		}
		if a.Label == "" {
			wrong = append(wrong, at+"no label")
		}
		if field.ID == "" || ids[field.ID] {
			wrong = append(wrong, at+"id is missing or used twice")
		}
		ids[field.ID] = true
	}
	return wrong
}
