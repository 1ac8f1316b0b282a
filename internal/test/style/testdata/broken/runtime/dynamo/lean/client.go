// Package lean is apart: its own pairs do not count, but it knows the store.
package lean

import "example.com/broken/runtime/dynamo"

func call() { sign(); dynamo.Helper() }
