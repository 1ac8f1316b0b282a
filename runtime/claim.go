package runtime

import "context"

// Claim is one part of AcquireAll, made by Resource.Claim. It serves one AcquireAll and belongs to one goroutine.
type Claim[C any] struct{ lease *Lease[C] }

// Lease returns the lease once AcquireAll has succeeded, else nil.
func (c *Claim[C]) Lease() *Lease[C] { return c.lease }

func (c *Claim[C]) claim() {}

// AnyClaim is a *Claim of any cost type.
type AnyClaim interface{ claim() }

// Claim prepares one part of AcquireAll.
func (r *Resource[E, C]) Claim(entity E, cost C) *Claim[C] { panic("to come") }

// AcquireAll takes all claims or none, in one transaction; parts that meet in one bucket are added up.
func (l *Limiter) AcquireAll(ctx context.Context, claims ...AnyClaim) error { panic("to come") }
