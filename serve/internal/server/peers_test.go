package server_test

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluice-go/sluice/internal/test/pipenet"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/serve/internal/peers"
)

// network is the replicas of a test by host, for their clients.
type network struct {
	hosts map[string]*pipenet.Listener
	calls atomic.Int64
}

// RoundTrip implements http.RoundTripper.
func (n *network) RoundTrip(r *http.Request) (*http.Response, error) {
	n.calls.Add(1)
	t := n.hosts[r.URL.Host].Transport()
	t.DisableKeepAlives = true
	return t.RoundTrip(r)
}

// TestPeers: any replica takes calls on a lease, and the one that holds it answers. A call is forwarded once,
// and only to a peer.
func TestPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, net := memdynamo.New(), &network{hosts: map[string]*pipenet.Listener{}}
		known := peers.New([]string{"http://one", "http://two"}, &http.Client{Transport: net})
		one, two := newPeer(t, engine, "one", known), newPeer(t, engine, "two", known)
		stranger := newRig(t, engine, "stranger")
		net.hosts["one"], net.hosts["two"] = one.listen, two.listen
		lease := "/v1/leases/" + one.acquire("300").Lease
		more := two.want(two.post(lease+"/more", `{"cost": {"tpm": 50}}`), http.StatusOK)
		if more.Left["tpm"] != 650. {
			t.Errorf("more: %s", more.body)
		}
		before := net.calls.Load()
		two.want(two.post(lease+"/alive", ""), http.StatusNoContent)
		if calls := net.calls.Load() - before; calls != 1 {
			t.Errorf("%d calls to forward one: it has not remembered the replica", calls)
		}
		two.want(two.post(lease+"/settle", `{"cost": {"tpm": "x"}}`), http.StatusBadRequest)
		settled := two.want(two.post(lease+"/settle", `{"cost": {"tpm": 20}}`), http.StatusOK)
		if settled.Left["tpm"] != 980. {
			t.Errorf("settled: %s", settled.body)
		}
		if again := one.want(one.post(lease+"/settle", `{}`), http.StatusGone); again.Ended != "settled" {
			t.Errorf("again: %s", again.body)
		}
		two.want(two.post(lease+"/release", ""), http.StatusGone)
		elsewhere := "/v1/leases/" + stranger.acquire("1").Lease + "/keep"
		two.want(two.post(elsewhere, ""), http.StatusMisdirectedRequest)
		forged := lease[:len(lease)-1] + "A"
		if forged == lease {
			forged = lease[:len(lease)-1] + "B"
		}
		two.want(two.post(forged+"/keep", ""), http.StatusNotFound)
		two.want(two.post(lease+"/keep", "", peers.Forwarded, "1"), http.StatusMisdirectedRequest) // no circles
	})
}

// TestPeersMove: replicas that have changed their addresses are found there by the first call.
func TestPeersMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, net := memdynamo.New(), &network{hosts: map[string]*pipenet.Listener{}}
		known := peers.New([]string{"http://one", "http://two"}, &http.Client{Transport: net})
		one, two := newPeer(t, engine, "one", known), newPeer(t, engine, "two", known)
		here := newPeer(t, engine, "here", peers.New([]string{"http://one", "http://two"},
			&http.Client{Transport: net}))
		net.hosts["one"], net.hosts["two"] = one.listen, two.listen
		lease := "/v1/leases/" + one.acquire("300").Lease
		here.want(here.post(lease+"/alive", ""), http.StatusNoContent)
		net.hosts["one"], net.hosts["two"] = two.listen, one.listen
		here.want(here.post(lease+"/keep", ""), http.StatusNoContent)
	})
}

// newPeer is newRig with peers.
func newPeer(t *testing.T, engine *memdynamo.Engine, replica string, all *peers.Peers) *rig {
	t.Helper()
	r := newRigOn(t, engine)
	r.peers = all
	r.serve(replica)
	return r
}

// TestPeerDown: a call that did not reach its replica has done nothing, and says so.
func TestPeerDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine, net := memdynamo.New(), &network{hosts: map[string]*pipenet.Listener{}}
		known := peers.New([]string{"http://silent"}, &http.Client{Transport: net, Timeout: time.Second})
		silent := pipenet.Listen()
		defer func() { _ = silent.Close() }()
		net.hosts["silent"] = silent
		here, holder := newPeer(t, engine, "here", known), newRig(t, engine, "holder")
		lease := "/v1/leases/" + holder.acquire("1").Lease
		a := here.want(here.post(lease+"/keep", ""), http.StatusServiceUnavailable)
		if a.header.Get("Retry-After") != "1" || strings.Contains(here.log.String(), lease[len("/v1/leases/"):]) {
			t.Errorf("%v %s\nlog: %s", a.header, a.body, here.log)
		}
		holder.want(holder.post(lease+"/keep", ""), http.StatusNoContent)
	})
}
