package redisstore

import (
	"fmt"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// slots is how many parts a cluster divides keys into.
const slots = 16384

// slot returns the part that key is in, as Redis Cluster has it: the CRC16 (XMODEM) of its hash tag, or of all of it.
func slot(key string) int {
	if _, tag, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tag, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0)
	for _, b := range []byte(key) {
		crc ^= uint16(b) << 8
		for range 8 {
			if carry := crc&0x8000 != 0; carry {
				crc = crc<<1 ^ 0x1021
			} else {
				crc <<= 1
			}
		}
	}
	return int(crc % slots)
}

// sharded reports that client spreads keys over nodes.
func sharded(client redis.UniversalClient) bool {
	switch client.(type) {
	case *redis.ClusterClient, *redis.Ring:
		return true
	}
	return false
}

// together says why r, of several parts, cannot be one script call: its keys lie in different slots. One part's do not, which
// Check has seen to.
func (s *session) together(r *request) error {
	if r.parts < 2 || !s.keys.rooted {
		return nil
	}
	first := r.shares[0].keys[0].(string)
	for i := range r.shares {
		sh := &r.shares[i]
		if key := sh.keys[0].(string); slot(key) != slot(first) {
			return &runtime.InvalidError{Resource: sh.spec.Resource, Field: "claim of", Value: sh.entity, Reason: fmt.Sprintf(
				"lies on another part of the cluster than %s for %s: acquire them one by one, or under one root", r.shares[0].spec.Resource, r.shares[0].entity)}
		}
	}
	return nil
}
