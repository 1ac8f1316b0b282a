package cli_test

import (
	"strings"
	"testing"

	limits "github.com/sluice-go/sluice/generated"
)

func TestReset(t *testing.T) {
	sequential(t)
	s, table := newSession(t, demo)
	schema := s.flags
	s.flags = s.flags[:2] // it reads no schema
	nothing := notStored("user-123", "gpt-4")
	s.run("reset user-123 gpt-4", 1, "", "sluice: "+nothing)
	s.run("reset gpt-4 user-123", 1, "", "sluice: "+notStored("gpt-4", "user-123"))
	s.run("reset user-123 gpt-4 --limit rps", 1, "", "sluice: "+nothing)
	code, out, errs := sluice(t, start, append(strings.Fields("reset user-123 gpt-4 --limit rpm --limit rps"),
		schema...)...)
	expect(t, code, out, errs, 2, "",
		"sluice: gpt-4 has no limit \"rps\": did you mean \"rpm\"?; run `sluice reset --help`\n")
	code, out, errs = sluice(t, start, append(strings.Fields("reset user-123 gpt-4 --limit rpm"), schema...)...)
	expect(t, code, out, errs, 1, "", "sluice: "+nothing)
	s.run("peek user-123 gpt-4", 0, nothing, "")
	if n := s.items(); n != 0 {
		t.Errorf("%d items were written for a bucket that is not there", n)
	}

	acquire(s, table, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	s.run("reset user-123 gpt-4 --limit rps", 1, "",
		"sluice: gpt-4: limit \"rps\" is not in the bucket of user-123: the bucket has rpm, tpm\n")
	s.run("reset user-123 gpt-4 --limit rpm", 0, `user-123 on gpt-4: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        65    100    100
`, "")
	s.run("reset user-123 gpt-4", 0, `user-123 on gpt-4: filled
  LIMIT  BEFORE   AFTER   BURST
  rpm       100     100     100
  tpm     1,000  15,000  15,000
`, "")
	s.run("peek user-123 gpt-4", 0, `user-123 on gpt-4
  LIMIT  AVAILABLE  CAPACITY   BURST  REFILL           FULL IN
  rpm          100       100     100  100 every 1m     now
  tpm       15,000    10,000  15,000  10,000 every 1m  now
`, "")

	// An override, of the entity or of its kind, that the bucket has not taken up.
	for _, who := range []string{"user-123", "user"} {
		code, _, errs := sluice(t, start, append([]string{"override", "set", who, "gpt-4", "rpm=200"},
			schema...)...)
		expect(t, code, "", errs, 0, "", "")
		s.run("reset user-123 gpt-4 --limit rpm", 0, `user-123 on gpt-4: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm       100    100    100
the bucket does not have the latest overrides yet: run this again once `+
			"`sluice override explain user-123 gpt-4` says that it has the limits in force\n", "")
		code, _, errs = sluice(t, start, append([]string{"override", "delete", who, "gpt-4"}, schema...)...)
		expect(t, code, "", errs, 0, "", "")
		acquire(s, table, limits.GPT4Cost{RPM: 10})
		s.run("reset user-123 gpt-4 --limit rpm", 0, `user-123 on gpt-4: filled
  LIMIT  BEFORE  AFTER  BURST
  rpm        90    100    100
`, "")
	}
}
