package dynamo

import (
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-go/sluice/internal/test/docrow"
	"github.com/sluice-go/sluice/internal/test/longform"
)

// protocol is where the figures of these tests are shown.
const protocol = "docs/protocol.md"

// documented compares what docs/protocol.md says of so many histories with the result. Admitted calls are
// stated in round numbers, as each change of the runtime changes them.
func documented(t *testing.T, histories uint64, r result) {
	t.Helper()
	row := docrow.Find(t, protocol, t.Name())
	if row == nil || !longform.Wanted() {
		return
	}
	least, err := strconv.Atoi(strings.ReplaceAll(row[1], ",", ""))
	if err != nil {
		t.Fatalf("%s: %q: %v", protocol, row, err)
	}
	if r.admitted < least || r.admitted > least*3/2 || row[2] != fmt.Sprint(r.findings.forged) ||
		row[3] != fmt.Sprint(r.findings.lost) {
		t.Errorf("%s says %q of these %d histories: %v", protocol, row, histories, r)
	}
}

// documentedKinds holds how many kinds of history a test plays, and of each, to docs/protocol.md.
func documentedKinds(t *testing.T, kinds int, of uint64) {
	t.Helper()
	row := docrow.Find(t, protocol, t.Name())
	if want := []string{fmt.Sprint(kinds), fmt.Sprint(of)}; !slices.Equal(row, want) {
		t.Errorf("%s says %q of %s, want %q", protocol, row, t.Name(), want)
	}
}

// documentedCost holds what docs/protocol.md says that so many writers cost each other, at a rate, to 0.05.
func documentedCost(t *testing.T, writers int, rate int64, perAdmitted float64) {
	t.Helper()
	row := docrow.Find(t, protocol, fmt.Sprintf("TestContention/%d_per_second,_%d_writers", rate, writers))
	shown, err := strconv.ParseFloat(strings.Join(row, ""), 64)
	if err != nil || math.Abs(shown-perAdmitted) > 0.05 {
		t.Errorf("%s says %q, want %.2f", protocol, row, perAdmitted)
	}
}

// TestProtocolNames: what docs/protocol.md says is broken on purpose is, and what it names as a history is
// one.
func TestProtocolNames(t *testing.T) {
	text, err := os.ReadFile("../../" + protocol)
	if err != nil {
		t.Fatal(err)
	}
	if named := documentedGuards(t, protocol); len(named) < 5 {
		t.Errorf("%s has these guards: %q", protocol, named)
	}
	names := map[string]bool{}
	for test, histories := range map[string]map[string]history{
		"TestSimulation": scenarios(), "TestSimulationOverChains": chains(), "TestSimulationOfCrowds": crowds(),
		"TestSimulationOfCrowdsOverChains": crowdsOverChains(), "TestSimulationOfKinds": kindHistories(t),
		"TestDeployments": deployments(t), "TestSimulationOfAllowances": allowanceHistories(),
	} {
		for name := range histories {
			names[test+"/"+strings.ReplaceAll(name, " ", "_")] = true
		}
	}
	found := regexp.MustCompile("\\| `((?:TestSimulation|TestDeployments)\\w*/[^`]*)` \\|").
		FindAllStringSubmatch(string(text), -1)
	for _, m := range found {
		if !names[m[1]] {
			t.Errorf("%s names a history that is not played: %s", protocol, m[1])
		}
	}
	if len(found) == 0 {
		t.Errorf("%s names no history", protocol)
	}
}

// TestDesignNamesControls: docs/design.md gives the reason for each guard that a control breaks.
func TestDesignNamesControls(t *testing.T) {
	const design = "docs/design.md"
	named := documentedGuards(t, design)
	for name := range controls() {
		if !slices.Contains(named, name) {
			t.Errorf("%s has no row for the control %q", design, name)
		}
	}
}

// documentedGuards returns the controls that a document's table of guards names. A name without a control is
// an error.
func documentedGuards(t *testing.T, document string) (named []string) {
	t.Helper()
	text, err := os.ReadFile("../../" + document)
	if err != nil {
		t.Fatal(err)
	}
	_, guards, _ := strings.Cut(string(text), "| guard | without it | broken as |\n|---|---|---|\n")
	guards, _, _ = strings.Cut(guards, "\n\n")
	all, broken := controls(), regexp.MustCompile("\\| `([^`]*)` \\|$")
	for line := range strings.SplitSeq(guards, "\n") {
		m := broken.FindStringSubmatch(line)
		if m == nil || all[m[1]] == nil {
			t.Errorf("nothing is broken as %s says: %s", document, line)
			continue
		}
		named = append(named, m[1])
	}
	return named
}
