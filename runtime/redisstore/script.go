package redisstore

import (
	"crypto/sha1" // Redis identifies scripts by it
	_ "embed"
	"encoding/hex"

	"github.com/sluice-go/sluice/runtime/store"
)

// Scripter is what a generated resource implements when limits.yaml lists store redis. It needs no import
// for that.
type Scripter interface {
	store.Definition
	// Script returns the script that charges calls to a chain of that many buckets: any.lua with every key
	// and every cost written out. ARGV does not have the number of keys. It returns "" if no call can have
	// such a chain, or it has too many keys for Lua. So it does if kinds differ in their limits, or if limits
	// have windows or count holds.
	Script(chain int) string
}

// anyScript serves calls for which no script was generated, with any number of keys.
//
//go:embed any.lua
var anyScript string

// windowsScript serves calls on resources with windowed limits, with any number of keys.
//
//go:embed windows.lua
var windowsScript string

// holdsScript serves calls on resources of which a limit counts holds, with any number of keys.
//
//go:embed holds.lua
var holdsScript string

// script is a script that charges, prepared for sending.
type script struct {
	eval, evalsha []any // the start of the command
	any           bool  // it serves any number of keys, and takes the number as its first argument
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{eval: []any{"eval", text}, evalsha: []any{"evalsha", hex.EncodeToString(sum[:])},
		any: text == anyScript || text == windowsScript || text == holdsScript}
}

// looping has the scripts for any number of keys: of resources without windows, with windows, and with holds.
// Each serves all resources before it too.
type looping [3]*script

// Places in looping.
const (
	plain = iota
	windowed
	holding
)

func newLooping() *looping {
	return &looping{newScript(anyScript), newScript(windowsScript), newScript(holdsScript)}
}
