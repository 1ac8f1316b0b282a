package httplimit_test

import (
	"net/http"
	"net/netip"
	"testing"

	"github.com/sluice-go/sluice/runtime/httplimit"
)

func TestClientIP(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("fd00::/8")}
	for _, test := range []struct {
		name      string
		remote    string
		forwarded []string
		trusted   []netip.Prefix
		want      string
	}{
		{"no proxy", "203.0.113.7:1234", nil, nil, "203.0.113.7"},
		{"a header that nobody trusted wrote", "203.0.113.7:1234", []string{"1.2.3.4"}, nil, "203.0.113.7"},
		{"nor behind proxies", "203.0.113.7:1234", []string{"1.2.3.4"}, proxies, "203.0.113.7"},
		{"a proxy", "10.0.0.1:80", []string{"203.0.113.7"}, proxies, "203.0.113.7"},
		{"two proxies", "10.0.0.1:80", []string{"203.0.113.7, 10.9.9.9"}, proxies, "203.0.113.7"},
		{"in two lines", "10.0.0.1:80", []string{"203.0.113.7", "10.9.9.9"}, proxies, "203.0.113.7"},
		{"what the client forged", "10.0.0.1:80", []string{"1.2.3.4, 203.0.113.7"}, proxies, "203.0.113.7"},
		{"proxies alone", "10.0.0.1:80", []string{"10.0.0.3, 10.0.0.2"}, proxies, "10.0.0.3"},
		{"a proxy without the header", "10.0.0.1:80", nil, proxies, "10.0.0.1"},
		{"no address", "10.0.0.1:80", []string{"203.0.113.7, unknown"}, proxies, "10.0.0.1"},
		{"with a port", "10.0.0.1:80", []string{"203.0.113.7:5678"}, proxies, "203.0.113.7"},
		{"IPv6", "[2001:db8:1:2:3:4:5:6]:80", nil, nil, "2001:db8:1:2::/64"},
		{"with a zone", "[fe80::1%eth0]:80", nil, nil, "fe80::/64"},
		{"a proxy of IPv6", "[fd00::1]:80", []string{"2001:db8::9"}, proxies, "2001:db8::/64"},
		{"in brackets", "[fd00::1]:80", []string{"[2001:db8::9]"}, proxies, "2001:db8::/64"},
		{"in brackets with a port", "[fd00::1]:80", []string{"[2001:db8::9]:443"}, proxies, "2001:db8::/64"},
		{"IPv4 in IPv6", "[::ffff:203.0.113.7]:80", nil, nil, "203.0.113.7"},
		{"a trusted one", "[::ffff:10.0.0.1]:80", []string{"203.0.113.7"}, proxies, "203.0.113.7"},
		{"a Unix socket", "@", []string{"203.0.113.7"}, proxies, ""},
		{"nothing", "", nil, proxies, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := &http.Request{RemoteAddr: test.remote, Header: http.Header{"X-Forwarded-For": test.forwarded}}
			if got := httplimit.ClientIP(r, test.trusted...); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// FuzzClientIP: whatever a client writes, its ID is an IPv4 address or a /64. Without a trusted proxy it is
// the address of the connection.
func FuzzClientIP(f *testing.F) {
	f.Add("203.0.113.7, 10.0.0.1")
	f.Add("[::1]:80,,\x00")
	f.Fuzz(func(t *testing.T, forwarded string) {
		r := &http.Request{RemoteAddr: "10.0.0.1:80", Header: http.Header{"X-Forwarded-For": {forwarded}}}
		if got := httplimit.ClientIP(r); got != "10.0.0.1" {
			t.Errorf("without proxies: %q", got)
		}
		got := httplimit.ClientIP(r, netip.MustParsePrefix("10.0.0.0/8"))
		network, err := netip.ParsePrefix(got)
		addr, wrong := netip.ParseAddr(got)
		if (wrong != nil || !addr.Is4()) && (err != nil || network.Bits() != 64) {
			t.Errorf("%q is neither an IPv4 address nor a /64", got)
		}
	})
}
