package redisstore

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/bucket"
)

// Fields of a bucket's hash.
const (
	tokensField = "tokens"
	sinceField  = "lastRefill"
)

// wrongType is the error of a key that holds something else than what a command is for.
const wrongType = "WRONGTYPE"

// explain says what is wrong where Redis has refused c: one of the keys, if it is no bucket, or else what the error says.
func (f *flight) explain(c *call) error {
	if wrong := f.noBucket(context.WithoutCancel(c.requests[0].ctx), c.err, c.requests[0].shares); wrong != nil {
		return wrong
	}
	return f.setupError(c.err)
}

// noBucket returns which key of shares is no bucket, if that is why Redis has refused a script with err; else nil.
func (s *session) noBucket(ctx context.Context, err error, shares []share) error {
	if text := err.Error(); !strings.Contains(text, wrongType) && !strings.Contains(text, "script") {
		return nil
	}
	for _, sh := range shares {
		for _, key := range sh.keys {
			event := runtime.StoreEvent{Call: "HMGET", Path: "read", Resource: sh.spec.Resource, Outcome: "found", Began: s.env.Clock.Now()}
			reply, err := s.client.HMGet(ctx, key.(string), tokensField, sinceField).Result()
			switch {
			case err != nil:
				event.Outcome = "failed"
			case reply[0] == nil:
				event.Outcome = "missing"
			}
			s.tell(ctx, event)
			if err != nil && !redis.HasErrorPrefix(err, wrongType) {
				continue
			}
			if _, err := decodeBucket(reply, err); err != nil {
				return malformed(key.(string), err)
			}
		}
	}
	return nil
}

// malformed is the error for a key that holds something else than a bucket.
func malformed(key string, err error) error {
	return &runtime.SetupError{
		What: fmt.Sprintf("the key %s is no bucket", key),
		Do:   "delete it, as a missing bucket is a full one, or use another Prefix",
		Err:  err,
	}
}

// decodeBucket reads the reply to an HMGET of a bucket's fields; it returns nil where there is no bucket.
func decodeBucket(fields []any, err error) (*StoredLimit, error) {
	if err != nil || fields[0] == nil {
		return nil, err
	}
	numbers := [2]float64{}
	for i, field := range []string{tokensField, sinceField} {
		text, _ := fields[i].(string)
		if numbers[i], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, fmt.Errorf("%s is %q, which is no number", field, text)
		}
	}
	// Rounded down as the script does.
	return &StoredLimit{Tokens: int64(math.Floor((numbers[0] + 1e-9) * bucket.Milli)), Refilled: int64(numbers[1])}, nil
}
