package cli_test

import (
	"testing"

	limits "github.com/sluice-go/sluice/generated"
)

func TestReset(t *testing.T) {
	s, table := newSession(t, demo)
	s.flags = s.flags[:2] // it reads no schema
	s.run("reset user-123 gpt-4", 0, "user-123 on gpt-4: "+
		"nothing is stored under this name: never used, expired, or misspelt; an unused bucket is full\n", "")
	if n := s.items(); n != 0 {
		t.Errorf("%d items were written for a bucket that is not there", n)
	}

	acquire(s, table, limits.GPT4Cost{RPM: 35, TPM: 14_000})
	s.run("reset user-123 gpt-4 --limit rps", 1, "", "sluice: gpt-4: limit \"rps\" is not in the bucket of user-123, which has rpm, tpm\n")
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
}
