package store

import "fmt"

// Policy says what becomes of an acquire when the store cannot answer: when it timed out, refused the
// connection or failed with a 5xx. It applies to nothing else. Allow is Local while the store gives a sign of
// life: it throttles, it has answered anything within two seconds, or probes ask it just now. It is Local as
// well if the call was not sent (ErrNotSent).
type Policy uint8

// Policies. The zero value leaves it to the next less specific place, in the end to limits.yaml.
const (
	Allow Policy = iota + 1 // admit: Lease.Degraded
	Deny                    // fail with the *UnavailableError
	Local                   // decide by a bucket in this process, from the last image: Lease.Degraded
)

// String returns p as limits.yaml has it.
func (p Policy) String() string {
	switch p {
	case Allow:
		return "allow"
	case Deny:
		return "deny"
	case Local:
		return "local"
	}
	return fmt.Sprintf("Policy(%d)", uint8(p))
}
