package x

import "github.com/sluice-go/sluice/runtime"

// If Generation2 is undefined, this code and the runtime package do not fit.
const _ = runtime.Generation2
