package review

import (
	"fmt"
	"time"

	"github.com/sluice-go/sluice/gen/internal/schema"
	"github.com/sluice-go/sluice/gen/internal/words"
)

// quotaLike is the shortest period with which a limit reads like a quota, such as 100 a day.
const quotaLike = time.Hour

// Notes returns what authors of s should know and may have meant otherwise, as file:line:col: NOTE: message.
// They are about limits that read like quotas, except those that say refills: true.
func Notes(s *schema.Schema) []string {
	var notes []string
	for _, r := range s.Resources {
		for _, l := range r.Limits {
			if l.Period < quotaLike || l.Refills || l.Window != nil || l.Unlimited() {
				continue
			}
			every := schema.Period(l.Period)
			notes = append(notes, fmt.Sprintf("%s: NOTE: limit %s of %s is no quota per %s: it refills all the time, "+
				"%s, so from a full bucket up to %s tokens are admitted within %s; nor does it bound how many calls run "+
				"at once; for a quota, write window in place of every; if it refills as it is meant to, write refills: "+
				"true", l.Pos, l.Name, r.Name, every, pace(l.Numbers), words.Digits(l.Burst+l.Refill, ","), every))
		}
	}
	return notes
}
