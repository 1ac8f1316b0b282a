package x

import "github.com/sluice-go/sluice/runtime/store"

// If Generation999 is undefined, this code and the runtime package do not fit.
const _ = store.Generation999
