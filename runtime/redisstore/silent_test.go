package redisstore_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	limits "github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/redisstore"
)

// TestCheckOfSilentRedis: Check ends though Redis takes connections and does not answer, and the client would
// try for longer.
func TestCheckOfSilentRedis(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := redis.NewClient(&redis.Options{
			ReadTimeout: time.Minute, MaxRetries: 5,
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				here, there := net.Pipe()
				go func() { // it reads, and says nothing
					for buffer := make([]byte, 1024); ; {
						if _, err := there.Read(buffer); err != nil {
							return
						}
					}
				}()
				return here, nil
			},
		})
		lim, err := limits.New(redisstore.New(client))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		err = lim.Check(t.Context())
		_, down := errors.AsType[*runtime.UnavailableError](err)
		if took := time.Since(began); !down || !errors.Is(err, context.DeadlineExceeded) || took > 10*time.Second {
			t.Errorf("after %v: %v", took, err)
		}
		if err := client.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
