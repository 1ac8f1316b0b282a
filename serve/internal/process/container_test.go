package process_test

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestContainerfile: the container file installs the program of this module with a Go that is new enough, and
// the image has what it installs. buildah has built it; registries of images are out of reach of tests.
func TestContainerfile(t *testing.T) {
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile("../../" + name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	file, mod := read("Containerfile"), read("go.mod")
	find := func(text, pattern string) string {
		t.Helper()
		m := regexp.MustCompile("(?m)" + pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("%s is not in %s", pattern, text)
		}
		return m[1]
	}
	installed := find(file, `go install .* (\S+)@\$VERSION$`)
	folder, ok := strings.CutPrefix(installed, find(mod, `^module (\S+)$`)+"/")
	if !ok || !strings.Contains(read(folder+"/main.go"), "package main") {
		t.Errorf("%q is no program of the module", folder)
	}
	image := find(file, `^FROM golang:(\S+) AS build$`)
	if !strings.HasPrefix(find(mod, `^go (\S+)$`), image+".") {
		t.Errorf("the image has Go %s", image)
	}
	program := path.Join(find(file, ` GOBIN=(\S+) `), path.Base(folder))
	if find(file, `^COPY --from=build (\S+) /sluice-serve$`) != program ||
		find(file, `^ENTRYPOINT \["(\S+)"\]$`) != "/sluice-serve" || find(file, `^USER (\d+)$`) == "0" {
		t.Errorf("the image has no %s:\n%s", program, file)
	}
}
