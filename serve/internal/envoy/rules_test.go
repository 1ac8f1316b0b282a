package envoy_test

import (
	"strings"
	"testing"

	"github.com/sluice-go/sluice/serve/internal/envoy"
)

// TestMistakes: each mistake in an envoy.yaml is reported with its place and its cure.
func TestMistakes(t *testing.T) {
	s, err := readSchema(t)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := readRules(t, rules, s); err != nil {
		t.Fatal(err)
	}
	const call = `  - match: {model: "*", key: "*", org: "*"}
    acquire: {resource: model, entity: {key: "{key}", org: "{org}"}, usage: {output: hits}}`
	for _, test := range []struct{ name, old, new, want string }{
		{"empty", rules, "",
			`1:1: the file is empty: write a domain and rules`},
		{"no YAML", rules, "domain: [",
			`1:1: this is no YAML: did not find expected node content`},
		{"two documents", rules, rules + "---\n{}\n",
			`16:1: there is a second document: remove it`},
		{"a list", rules, "- a",
			`1:1: the file is no mapping: write {key: value}`},
		{"no domain", "domain: gateway\n", "",
			`1:1: the file has no domain: add it`},
		{"an empty domain", "domain: gateway", "domain:",
			`1:8: domain is no text: write one`},
		{"unmatched", "unmatched: allow", "unmatched: alow",
			`15:12: unmatched is neither allow nor deny: write one of them`},
		{"a key", "unmatched:", "unmached:",
			`15:1: key "unmached" is unknown in the file: did you mean "unmatched"?`},
		{"twice", "unmatched:", "domain: x\nunmatched:",
			`15:1: key "domain" is there twice: remove one`},
		{"an alias", "unmatched: allow", "unmatched: *a",
			`1:1: this is no YAML: unknown anchor 'a' referenced`},
		{"no list", rules, "domain: x\nunmatched: deny\nrules: {}",
			`3:8: rules is no list: write one element in each line, behind a dash`},
		{"no match", `match: {phase: done, lease: "*"}`, "match: {}",
			`3:12: match has no key: write at least one`},
		{"neither", `    settle: {lease: "{lease}"}`, "",
			`5:5: rule 2 has to have one of acquire and settle`},
		{"no text", `phase: end`, "phase: [end]",
			`5:20: the value of "phase" is no text: write one`},
		{"resource", "resource: jobs", "resource: job",
			`12:25: resource "job" is none of limits.yaml: did you mean "jobs"?`},
		{"kind", `{ip: "{remote`, `{id: "{remote`,
			`14:42: address: entity "id" is no kind of limits.yaml: did you mean "ip"?`},
		{"gap", call, strings.Replace(call, `, org: "{org}"`, "", 1),
			""}, // the parent is looked up
		{"placeholder", `"{remote_address}"`, `"{remote_addr}"`,
			`14:47: the id of "ip" names "remote_addr", which is no key of match: did you mean "remote_address"?`},
		{"two placeholders", `{org: "{org}"}`, `{org: "{org}{job}"}`,
			`12:45: the id of "org" is no key in braces: write one key, such as "{key}", or a text without braces`},
		{"usage", "usage: {output: hits}}\n  - match: {cost", "usage: {outputs: hits}}\n  - match: {cost",
			`8:77: model: usage "outputs" is no usage: did you mean "output"?`},
		{"no usage", `{ip: "{remote_address}"}`, `{ip: "{remote_address}"}, usage: {a: 1}`,
			`14:75: address: usage has no meaning, since limits.yaml has no usage for it: write the cost`},
		{"cost", "tpm: hits", "tmp: hits",
			`10:76: model: cost "tmp" is no limit: it can be tpm or month`},
		{"hits of money", "month: 0.5", "month: hits",
			`10:95: hits are whole numbers, and month is money: write a usage, whose prices are in limits.yaml`},
		{"money", "month: 0.5", "month: 0.x",
			`10:76: model: cost of month "0.x" has more than digits and a point: write the number alone`},
		{"count", "tpm: hits", "tpm: 1.5",
			`10:82: "1.5" `},
		{"not charged", call,
			strings.NewReplacer(`key: "{key}", `, "", `usage: {output: hits}`, `cost: {month: 1}`).Replace(call),
			""},
		{"both", "cost: {tpm: hits, month: 0.5}", "cost: {tpm: hits}, usage: {output: hits}",
			`10:96: there is a cost and a usage: write one of them`},
		{"an empty cost", "cost: {tpm: hits, month: 0.5}", "cost: {}",
			`10:76: cost is empty: leave it out`},
		{"lease", `settle: {lease: "{lease}"}`, `settle: {lease: "abc"}`,
			`6:21: lease is no key of the descriptor: write it in braces, such as "{lease}"`},
		{"settle", `"{lease}", usage: {output: hits}`, `"{lease}", usage: {outp: hits}`,
			`4:39: no rule acquires of a resource that has outp: write names of limits.yaml`},
		{"never", "phase: end, lease", "phase: done, lease",
			`5:5: rule 2 never applies: rule 1 applies to all of its descriptors; put it above, or remove it`},
		{"no name", "resource: jobs,", "resource: gateway,",
			`12:14: gateway: name is missing: write which name of the catalog the call is on`},
		{"a name", "resource: jobs,", "resource: jobs, name: o3,",
			`12:37: jobs: name "o3" has no meaning: limits.yaml has no names: catalog for it; leave it out`},
		{"a name of no key", "resource: jobs,", `resource: gateway, name: "{model}",`,
			`12:40: name names "model", which is no key of match: it can be org or job`},
		{"slots", "  - match: {phase: end, lease: \"*\"}\n    settle: {lease: \"{lease}\"}\n", "",
			`10:14: nothing ends the leases of jobs, whose slots would stay taken until they run out ` +
				`(--lease-max): add a rule with settle`},
	} {
		text := strings.Replace(rules, test.old, test.new, 1)
		if text == rules {
			t.Fatalf("%s: nothing is replaced", test.name)
		}
		_, err := readRules(t, text, s)
		if test.want == "" {
			if err != nil {
				t.Errorf("%s: %v", test.name, err)
			}
			continue
		}
		if err == nil || !strings.HasPrefix(err.Error(), "envoy.yaml:"+test.want) {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
	}
}

// TestAllMistakes: one run reports all mistakes, in the order of the file.
func TestAllMistakes(t *testing.T) {
	s, err := readSchema(t)
	if err != nil {
		t.Fatal(err)
	}
	_, err = readRules(t, "domain: x\nunmatched: no\n"+
		"rules: [{match: {a: b}}, {match: {c: d}, acquire: {}}]\n", s)
	const want = `envoy.yaml:2:12: unmatched is neither allow nor deny: write one of them
envoy.yaml:3:9: rule 1 has to have one of acquire and settle
envoy.yaml:3:51: acquire has no resource: add it
envoy.yaml:3:51: acquire has no entity: add it`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
}

// FuzzRules: a file is read or has mistakes with places; nothing else happens.
func FuzzRules(f *testing.F) {
	s, err := readSchema(f)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rules)
	f.Add("domain: &a [*a]\nrules: *a")
	f.Add("? {a: b}\n: c\n<<: {d: e}\n")
	f.Fuzz(func(t *testing.T, text string) {
		all, err := readRules(t, text, s)
		if (all == nil) == (err == nil) {
			t.Fatal(all, err)
		}
		if mistakes, ok := err.(*envoy.FileError); ok { //nolint:errorlint // Read returns it as it is
			for _, m := range mistakes.Mistakes {
				if m.Line < 1 || m.Column < 1 || m.Message == "" {
					t.Fatalf("%+v", m)
				}
			}
		}
	})
}
