package runtime

import "github.com/sluice-go/sluice/runtime/store"

// request is one call to the store, with notes that the store does not need.
type request struct {
	store.Call

	chains []chain // one for each of Parts
	asked  bool    // the store was asked to charge it, not only for parents
	outage error   // why the failure policy decided on it; nil where it did not
}

// chain is what a request notes of one part.
type chain struct {
	spec  *store.Spec // of the part's Def
	above *ancestry   // where look-ups continue the chain; nil once the part's Buckets are complete
	ids   []string    // stored ids of the entity and its ancestors, for their calendars; nil if none matters
}
