// Package redistest gives tests a Redis with a clock that they can advance.
//
//	func TestMain(m *testing.M) { redistest.Main(m) }
//
//	func TestAcquire(t *testing.T) {
//		r := redistest.New(t)
//		store := redisstore.New(r.Client, redisstore.Prefix(r.Prefix))
//		…
//		r.Advance(time.Minute)
//	}
//
// By default it is miniredis in the process, one per test. With SLUICE_REDIS=server the same tests run on
// a real redis-server (`make test-redis`), or on the program that SLUICE_REDIS_SERVER names. Each test
// binary starts one, or uses the one at SLUICE_REDIS_ADDR. A machine without a server fails them then, so
// a missing server cannot pass for a green run. Tests that need a server, or a cluster, of their own ask
// for it, and skip without that variable.
package redistest
