package x

import "github.com/sluice-go/sluice/runtime"

// If Generation1 is undefined, this code and the runtime package do not fit: run `go generate ./...`.
const _ = runtime.Generation1
