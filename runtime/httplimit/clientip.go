package httplimit

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ClientIP returns the address of r's client, as the ID of an entity for each client, such as 203.0.113.7.
// For IPv6 it is the /64 network, such as 2001:db8::/64, since one client has all of it. It is empty, which
// an acquire refuses, if the connection has no address, as behind a Unix socket.
//
// Anyone can write X-Forwarded-For, so ClientIP reads it only behind the proxies in trusted. It reads from
// the end, where each proxy adds the address that called it, up to the first address that is not trusted.
// Without trusted it is the address of the connection.
func ClientIP(r *http.Request, trusted ...netip.Prefix) string {
	client, ok := address(r.RemoteAddr)
	if !ok {
		return ""
	}
	isTrusted := func(a netip.Addr) bool {
		return slices.ContainsFunc(trusted, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	for _, line := range slices.Backward(r.Header.Values("X-Forwarded-For")) {
		for more := true; more && isTrusted(client); {
			var hop string
			line, hop, more = cutLast(line)
			before, ok := address(strings.TrimSpace(hop))
			if !ok { // a trusted proxy was called by something without an address
				return id(client)
			}
			client = before
		}
	}
	return id(client)
}

// cutLast splits a list at its last comma, and reports whether it has one.
func cutLast(list string) (before, last string, found bool) {
	i := strings.LastIndexByte(list, ',')
	return list[:max(i, 0)], list[i+1:], i >= 0
}

// id returns an address, or the /64 of an IPv6 address.
func id(client netip.Addr) string {
	if client.Is4() {
		return client.String()
	}
	network, _ := client.Prefix(64) // fails for an IPv4 address alone
	return network.String()
}

// address reads an address that may have a port. An IPv4 address in IPv6 is the IPv4 address.
func address(s string) (netip.Addr, bool) {
	addr, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]"))
	if err != nil {
		withPort, err := netip.ParseAddrPort(s)
		if err != nil {
			return netip.Addr{}, false
		}
		addr = withPort.Addr()
	}
	return addr.Unmap().WithZone(""), true
}
