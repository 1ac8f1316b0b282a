package leases

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"hash"
	"sync"
)

// A lease's name has four parts, in base64url: the replica, the start of its process, the lease's number, and
// a code that authenticates the other three.
const (
	replicaLen = 6
	processLen = replicaLen + 6
	numberLen  = 8
	codeLen    = 16
	nameLen    = processLen + numberLen + codeLen
)

// Why a name names no lease of this process.
var (
	ErrForged    = errors.New("no such lease")
	ErrElsewhere = errors.New("another replica holds the lease")
	ErrDied      = errors.New("the process that held the lease has ended")
)

// Names makes the names of a process's leases, and tells them from all others.
type Names struct {
	process [processLen]byte
	codes   sync.Pool // of hash.Hash, keyed
}

// NewNames returns the Names of a process that has just started. replica names where it runs: after a restart
// there, the process has the same one.
func NewNames(replica string) *Names {
	n := &Names{}
	at := sha256.Sum256([]byte(replica))
	copy(n.process[:replicaLen], at[:])
	key := make([]byte, sha256.Size)
	_, _ = rand.Read(n.process[replicaLen:]) // it never fails
	_, _ = rand.Read(key)
	n.codes.New = func() any { return hmac.New(sha256.New, key) }
	return n
}

// Replica returns the id of the process's replica, as ReplicaOf does.
func (n *Names) Replica() string { return encoding.EncodeToString(n.process[:replicaLen]) }

// ReplicaOf returns the id of the replica that holds a lease, from the lease's name: "" for a text that is no
// name.
func ReplicaOf(name string) string {
	raw, err := encoding.DecodeString(name)
	if err != nil || len(raw) != nameLen {
		return ""
	}
	return encoding.EncodeToString(raw[:replicaLen])
}

// encoding has no padding, and refuses a text with bits that no name has.
var encoding = base64.RawURLEncoding.Strict()

// Name returns the name of a lease by its number.
func (n *Names) Name(number uint64) string {
	var raw [nameLen]byte
	copy(raw[:], n.process[:])
	binary.BigEndian.PutUint64(raw[processLen:], number)
	n.code(raw[:processLen+numberLen], raw[processLen+numberLen:])
	return encoding.EncodeToString(raw[:])
}

// code writes the code of a name's other parts.
func (n *Names) code(of, dst []byte) {
	h, _ := n.codes.Get().(hash.Hash)
	h.Reset()
	h.Write(of)
	var sum [sha256.Size]byte
	copy(dst, h.Sum(sum[:0]))
	n.codes.Put(h)
}

// Number returns the number of a lease that this process has named. It fails with ErrForged, ErrElsewhere or
// ErrDied. Only this process knows its key, so the code of another one's name is not checked.
func (n *Names) Number(name string) (uint64, error) {
	var raw, own [nameLen]byte
	if len(name) != encoding.EncodedLen(nameLen) {
		return 0, ErrForged
	}
	if _, err := encoding.Decode(raw[:], []byte(name)); err != nil {
		return 0, ErrForged
	}
	switch {
	case [replicaLen]byte(raw[:]) != [replicaLen]byte(n.process[:]):
		return 0, ErrElsewhere
	case [processLen]byte(raw[:]) != n.process:
		return 0, ErrDied
	}
	n.code(raw[:processLen+numberLen], own[:codeLen])
	if !hmac.Equal(own[:codeLen], raw[processLen+numberLen:]) {
		return 0, ErrForged
	}
	return binary.BigEndian.Uint64(raw[processLen:]), nil
}
