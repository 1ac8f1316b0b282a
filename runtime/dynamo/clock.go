package dynamo

import "time"

// left returns the time until a context's deadline, which is the system's, whatever the Clock.
func left(deadline time.Time) time.Duration { return time.Until(deadline) }
