package redisstore

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
)

// explain says what is wrong where Redis has refused c: one of the keys, if it is no bucket, or else what the error says.
func (f *flight) explain(c *call) error {
	text := c.err.Error()
	if strings.HasPrefix(text, "WRONGTYPE") || strings.Contains(text, "user_script") {
		for _, sh := range c.requests[0].shares {
			for _, key := range sh.keys {
				if err := f.malformed(key.(string)); err != nil {
					return err
				}
			}
		}
	}
	return f.setupError(c.err)
}

// malformed says that key holds something else than a bucket, if it does.
func (s *Store) malformed(key string) error {
	fields, err := s.client.HMGet(context.Background(), key, tokensField, sinceField).Result()
	if err == nil {
		_, err = decodeBucket(fields)
	} else if !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return nil
	}
	if err == nil {
		return nil
	}
	return &runtime.SetupError{
		What: fmt.Sprintf("the key %s is no bucket", key),
		Do:   "delete it, or use another Prefix: a missing bucket is a full one",
		Err:  err,
	}
}

// Fields of a bucket's hash.
const (
	tokensField = "tokens"
	sinceField  = "lastRefill"
)

// stored is what a bucket's hash says of one limit.
type stored struct {
	tokens float64
	since  int64 // ms
}

// decodeBucket reads the fields of a bucket's hash, nil where it is missing.
func decodeBucket(fields []any) (*stored, error) {
	if fields[0] == nil {
		return nil, nil //nolint:nilnil // as documented
	}
	text := func(i int) string { s, _ := fields[i].(string); return s }
	tokens, err := strconv.ParseFloat(text(0), 64)
	if err != nil {
		return nil, fmt.Errorf("%s %q: want a number", tokensField, text(0))
	}
	since, err := strconv.ParseFloat(text(1), 64) // Redis's Lua may write it as 1.7e+12
	if err != nil {
		return nil, fmt.Errorf("%s %q: want a time in ms", sinceField, text(1))
	}
	return &stored{tokens, int64(since)}, nil
}
