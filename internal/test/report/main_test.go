package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// lines are what `go test -json` prints of a package with a test of each kind.
var lines = strings.ReplaceAll(`go: downloading something
{"Action":"start","Package":"MODULE/a"}
{"Action":"output","Package":"MODULE/a","Test":"TestLess","Output":"    a_test.go:3: a log\n"}
{"Action":"attr","Package":"MODULE/a","Test":"TestLess","Key":"left-out","Value":"9 of 10 histories"}
{"Action":"attr","Package":"MODULE/a","Test":"TestLess","Key":"other","Value":"x"}
{"Action":"pass","Package":"MODULE/a","Test":"TestLess"}
{"Action":"output","Package":"MODULE/a","Test":"TestTool","Output":"=== RUN   TestTool\n"}
{"Action":"output","Package":"MODULE/a","Test":"TestTool","Output":"    a_test.go:9: no tool on PATH\n"}
{"Action":"output","Package":"MODULE/a","Test":"TestTool","Output":"--- SKIP: TestTool (0.00s)\n"}
{"Action":"skip","Package":"MODULE/a","Test":"TestTool"}
{"Action":"output","Package":"MODULE/a","Output":"PASS\n"}
{"Action":"output","Package":"MODULE/a","Output":"ok  \tMODULE/a\t0.1s\n"}
{"Action":"pass","Package":"MODULE/a"}
`, "MODULE", "github.com/sluice-go/sluice")

const printed = "go: downloading something\nok  \tgithub.com/sluice-go/sluice/a\t0.1s\n" + `
Left out; ` + "`make test-long`" + ` runs them, as CI does:
  a TestLess: 9 of 10 histories

Skipped:
  no tool on PATH
      a TestTool
`

func TestReport(t *testing.T) {
	for name, test := range map[string]struct {
		in, want string
		failed   bool
	}{
		"a pass": {lines, printed, false},
		"a failure": {
			`{"Action":"output","Package":"a","Test":"TestX","Output":"    x_test.go:3: wrong\n"}` + "\n" +
				`{"Action":"output","Package":"a","Test":"TestX","Output":"--- FAIL: TestX (0.00s)\n"}` + "\n" +
				`{"Action":"fail","Package":"a","Test":"TestX"}` + "\n" +
				`{"Action":"output","Package":"a","Output":"FAIL\ta\t0.1s\n"}` + "\n" +
				`{"Action":"fail","Package":"a"}`,
			"    x_test.go:3: wrong\n--- FAIL: TestX (0.00s)\nFAIL\ta\t0.1s\n", true,
		},
		"a check of rapid that fails": {
			`{"Action":"output","Package":"a","Test":"TestX","Output":"    x_test.go:3: [rapid] wrong\n"}` +
				"\n" + `{"Action":"output","Package":"a","Test":"TestX","Output":` +
				`"        To reproduce, specify -run=\"TestX\" -rapid.seed=7\n"}` + "\n" +
				`{"Action":"fail","Package":"a","Test":"TestX"}`,
			"    x_test.go:3: [rapid] wrong\n        To reproduce, specify -run=\"TestX\" -rapid.seed=7\n" +
				"\nFailed; go test repeats it with:\n  a -run=\"TestX\" -rapid.seed=7\n", true,
		},
		"a build that fails": {
			`{"ImportPath":"a","Action":"build-output","Output":"a.go:1: no\n"}` + "\n" +
				`{"ImportPath":"a","Action":"build-fail"}`,
			"a.go:1: no\n", true,
		},
		"a test that does not end": {
			`{"Action":"output","Package":"a","Test":"TestX","Output":"panic: wrong\n"}` + "\n" +
				`{"Action":"fail","Package":"a"}`,
			"panic: wrong\n", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			failed, err := report(strings.NewReader(test.in), &out)
			if err != nil || failed != test.failed {
				t.Errorf("failed %t, %v", failed, err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("printed (-want +got):\n%s", diff)
			}
		})
	}
}
