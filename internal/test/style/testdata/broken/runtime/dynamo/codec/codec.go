// Package codec names what a package before it in the direction declares.
package codec

import "example.com/broken/runtime/dynamo/internal/wire"

var sender wire.Sender
