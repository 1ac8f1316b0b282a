package redistest

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/internal/test/redisserver"
)

// masters of a cluster: with fewer there is no majority without one.
const masters = 3

// slots of a cluster.
const slots = 16384

// Cluster is a Redis Cluster of three masters.
type Cluster struct{ addrs []string }

// Client returns a client of it, which the test's end closes.
func (c *Cluster) Client(t testing.TB) redis.UniversalClient {
	t.Helper()
	return dial(t, c.addrs...)
}

// Addrs returns where its masters listen, as host:port.
func (c *Cluster) Addrs() []string { return c.addrs }

// New returns a Redis on it with no keys, for this test alone.
func (c *Cluster) New(t testing.TB) *Redis {
	t.Helper()
	return newRedis(t, c.addrs...)
}

// StartCluster starts one for this test alone; the test's end stops it. Without SLUICE_REDIS=server the test
// skips.
func StartCluster(t testing.TB) *Cluster {
	t.Helper()
	RequireServer(t)
	var addrs []string
	var nodes []redis.UniversalClient
	buses := make([]int, masters)
	for i := range masters {
		bus, err := redisserver.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		s := StartServer(t, "--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus))
		addrs, nodes, buses[i] = append(addrs, s.Addr()), append(nodes, s.Client()), bus
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), redisserver.StartLimit,
		fmt.Errorf("no cluster for %v", redisserver.StartLimit))
	defer cancel()
	for i, node := range nodes {
		first, last := i*slots/masters, (i+1)*slots/masters-1
		if err := node.Do(ctx, "CLUSTER", "ADDSLOTSRANGE", first, last).Err(); err != nil {
			t.Fatalf("give node %d of the cluster its slots: %v", i, err)
		}
		if err := node.Do(ctx, "CLUSTER", "SET-CONFIG-EPOCH", i+1).Err(); err != nil {
			t.Fatalf("give node %d of the cluster its epoch: %v", i, err)
		}
		if i == 0 {
			continue
		}
		host, port, _ := strings.Cut(addrs[0], ":")
		if err := node.Do(ctx, "CLUSTER", "MEET", host, port, buses[0]).Err(); err != nil {
			t.Fatalf("have node %d of the cluster meet the first: %v", i, err)
		}
	}
	for i, node := range nodes {
		if err := redisserver.Await(ctx, func() (bool, error) { return clustered(ctx, node) }); err != nil {
			t.Fatalf("wait for node %d of the cluster: %v", i, err)
		}
	}
	return &Cluster{addrs}
}

// clustered reports that node knows all others and who has which slots.
func clustered(ctx context.Context, node redis.UniversalClient) (bool, error) {
	info, err := node.ClusterInfo(ctx).Result()
	if err != nil {
		return false, err
	}
	all, err := node.ClusterSlots(ctx).Result()
	return strings.Contains(info, "cluster_state:ok") && len(all) == masters, err
}
