package redisstore

import (
	"crypto/sha1" // what Redis knows scripts by
	_ "embed"
	"encoding/hex"

	"github.com/sluice-go/sluice/runtime"
)

// Scripter is what a generated resource implements when limits.yaml lists store redis. It needs no import for that.
type Scripter interface {
	runtime.Definition
	// Script returns the script that charges calls to a chain of that many buckets: any.lua with every key and every cost written
	// out, and without the number of keys in ARGV. Where chain is none that a call can have, or has too many keys for Lua, it is "".
	Script(chain int) string
}

// anyScript serves what no generated script does.
//
//go:embed any.lua
var anyScript string

// script is one that charges, as Redis is told to run it.
type script struct {
	eval, evalsha []any // what the command starts with
	any           bool  // it serves any number of keys, and has to be told how many
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{eval: []any{"eval", text}, evalsha: []any{"evalsha", hex.EncodeToString(sum[:])}, any: text == anyScript}
}
