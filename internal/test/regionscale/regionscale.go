// Package regionscale measures regional sync in the case that docs/regions.md states costs of: three regions
// that divide the limits of 2,000 entities on 10 resources, with windows of 10 s.
//
// World and Play are the simulation, of what is written and read. Cycle is what a cycle takes in the process.
// Month is the bill.
package regionscale

import "time"

// The case.
const (
	Regions   = 3
	Entities  = 2000
	Resources = 10 // of one limit each
	Window    = 10 * time.Second
	floor     = 5     // percent
	whole     = 1_000 // tokens a minute in all regions together
)

// begin is when cycles begin.
var begin = time.UnixMilli(1_700_000_000_000)

func names() []string { return []string{"ap", "eu", "us"} }
