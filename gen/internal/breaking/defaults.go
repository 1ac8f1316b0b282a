package breaking

import "github.com/sluice-go/sluice/gen/internal/digest"

func revisionReused(c *comparison) {
	if c.new.Revision != c.old.Revision {
		return
	}
	if changed := digest.Changes(digest.Of(c.new), digest.Of(c.old)); changed != "" {
		c.report(c.new.RevisionPos, "", "the numbers of revision %d have changed (%s): buckets are compared by "+
			"revision alone, so that some would have the old numbers and some the new; raise revision to %d",
			c.old.Revision, changed, c.old.Revision+1)
	}
}

func revisionLowered(c *comparison) {
	if c.new.Revision < c.old.Revision {
		c.report(c.new.RevisionPos, "", "revision was %d and is %d: buckets may have the numbers of the higher "+
			"one, and keep them; raise revision to %d, also to bring old numbers back",
			c.old.Revision, c.new.Revision, c.old.Revision+1)
	}
}
