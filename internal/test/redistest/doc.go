// Package redistest gives tests a Redis whose time they can let pass.
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
// It is miniredis in the process, one per test, which needs nothing. With SLUICE_REDIS=server the same tests
// run on a real redis-server (`make test-redis`), one per test binary, which that starts, or on the one at
// SLUICE_REDIS_ADDR: there a machine that has none fails them, so that a missing server cannot pass for a
// green run. Tests that need a server, or a cluster, of their own ask for it, and skip without that variable.
package redistest
