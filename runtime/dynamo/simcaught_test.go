package dynamo

import "regexp"

// The findings of result.exact, as regular expressions.
const (
	sayForged   = `^forged [1-9]`
	sayLost     = `^forged \d+, lost [1-9]`
	sayOver     = `over-admitted [1-9]`
	sayRepeated = `^op \S+, which gives back, was applied again at`
	sayCharged  = `^\S+, limit \d: charged .* for what comes to`
	sayStale    = `^\S+ was charged .*, which had not been in force`
	sayTooSoon  = `granted twice [1-9].*: a window granted twice: it ends at \d+, too soon`
	sayOpen     = `granted twice [1-9].*: a window granted twice: opened while the one until \d+ was open`
	sayDeleted  = `deleted [1-9]\d*: .*the bucket was deleted in the window that ends at`
	sayRemoved  = `, of revision 3: it has rpm: true, at`
)

// finding returns what the oracle finds where the control of this name is broken: any other finding is not
// the fault that the control is about.
func finding(control string) *regexp.Regexp {
	return regexp.MustCompile(map[string]string{
		"Retry without its upper guard in a parent":     sayForged,
		"transaction without the debt guard":            sayForged,
		"give-backs and takes netted before the guards": sayForged + `|` + sayOver,

		"headroom for the largest acquire of a batch alone":          sayOver,
		"batches that give back repeated":                            sayRepeated,
		"newcomers under an op of unknown outcome":                   sayRepeated,
		"abandoned callers charged":                                  sayCharged,
		"guard at the instant of the first of a batch":               sayForged,
		"transaction piece by piece":                                 `^an admitted call was charged \d+ times`,
		"transaction of unknown outcome under a new token":           `^op \S+ charged \d+ times, in a chain of`,
		"compensation given twice":                                   sayCharged,
		"compensation repeated":                                      sayRepeated,
		"denial by one refusal of the chain":                         `^denied from .*, but not for the \d+ of`,
		"overrides without cv":                                       sayStale,
		"Reshape to lower versions too":                              `^\S+ was given shape \d+ again at`,
		"the seeds' conditions":                                      sayOver,
		"Retry without its upper guard":                              sayForged,
		"Retry without cv":                                           sayForged,
		"Retry charges double":                                       `^\S+ was charged .*, for acquires of`,
		"clamped Normal without the exact match":                     sayLost,
		"clamped Normal open where the cost is 0":                    sayLost,
		"contended Normal leaks":                                     sayLost,
		"ttl from a stale balance":                                   sayForged,
		"blind Adjust upward":                                        sayForged,
		"refunds repeated":                                           sayRepeated,
		"give-backs dropped":                                         sayCharged,
		"no op <> :op on charges":                                    `^op \S+ was applied twice in a row`,
		"deny from a stale cached image":                             `^denied from .*, what \S+ had all the time`,
		"Reshape without rf":                                         sayForged,
		"Reshape without cv":                                         sayLost,
		"clamped Reshape without the exact match":                    sayLost,
		"Reshape refills with the new parameters":                    sayForged,
		"refill is claimed for known limits alone":                   sayLost,
		"clamped refill of an unknown limit without the exact match": sayLost,
		"debt guard of known limits only":                            sayForged,
		"ttl of known limits alone":                                  sayForged,
		"Reshape to lower revisions too":                             sayForged,
		"old binaries add what they miss":                            sayRemoved,
		"a limit is added without if_not_exists":                     sayForged,
		"an added limit starts empty":                                sayLost,
		"an added limit is refilled since before":                    sayForged,
		"removed limits stay":                                        sayRemoved,

		"projects with the limits of organisations":      `^project-\d, of revision 1: it has rpd: true, at`,
		"organisations with the limits of projects":      `^an admitted call was charged 0 times by org-1`,
		"a limit that organisations have is not charged": `^forged [1-9].*: org-1, limit 2 off by [1-9]`,
		"limits that end for a kind stay":                `lost [1-9].*: (user-\d, limit 1|project-\d, limit 0)`,

		"windows without their least length":                            sayTooSoon,
		"a boundary since rf":                                           sayOpen,
		"a give-back without its window":                                sayForged,
		"a claim without the exact balance":                             sayForged + `|` + sayLost,
		"windows guarded only where they are asked":                     sayDeleted,
		"claims of refill that guard windows only where they are asked": sayOpen,

		"ttl before the end of the window":              sayDeleted,
		"ttl right after the end of the window":         sayTooSoon,
		"Reshape that fills the window":                 sayForged,
		"a reset that keeps the end of the window":      sayForged,
		"the window of a lease from the last try":       sayForged + `|` + sayLost,
		"usage of a window that is over is not lowered": `^\S+ was charged .*, for acquires of`,
		"one window for all charges of a lease":         sayForged,
	}[control])
}

// shown is the seed with which a control was seen last, if it is a late one. The histories begin there.
func shown(control string) uint64 {
	return map[string]uint64{
		"Retry without cv":                          4,
		"blind Adjust upward":                       12,
		"debt guard of known limits only":           37,
		"transaction without the debt guard":        10,
		"ttl from a stale balance":                  32,
		"windows guarded only where they are asked": 12,
		"the window of a lease from the last try":   3,
		"a boundary since rf":                       2,
		"windows without their least length":        2,
	}[control]
}
