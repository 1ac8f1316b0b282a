// Package odd has no place in the direction.
package odd

import "example.com/broken/runtime/dynamo"

var store dynamo.Store
