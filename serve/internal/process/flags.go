// Package process is `sluice-serve`: its flags, the store and the listeners that they name, and the process
// from its start to its end.
package process

import (
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/serve/internal/peers"
)

// Flags are those of the command line.
type Flags struct {
	File  string `default:"limits.yaml" placeholder:"limits.yaml" help:"Path of the schema."`
	Check bool   `help:"Check the files, and end."`

	Endpoint  string  `placeholder:"URL" help:"Endpoint of DynamoDB, such as http://127.0.0.1:8000."`
	Region    string  `placeholder:"REGION" help:"AWS region of the table."`
	Table     *string `env:"SLUICE_TABLE" placeholder:"rate_limits" help:"Name of the table, or its ARN."`
	Namespace *string `env:"SLUICE_NAMESPACE" placeholder:"NAME" help:"Namespace of the table."`
	Redis     *string `env:"SLUICE_REDIS_URL" placeholder:"URL" help:"${redis}"`
	Prefix    *string `env:"SLUICE_REDIS_PREFIX" placeholder:"sluice:" help:"With --redis: prefix of all keys."`

	HTTP        string `name:"http" default:"127.0.0.1:8080" help:"${http}"`
	Envoy       string `placeholder:"envoy.yaml" help:"Path of the rules for Envoy, which --grpc serves."`
	GRPC        string `name:"grpc" default:"127.0.0.1:8081" help:"${grpc}"`
	TokenFile   string `placeholder:"FILE" help:"File of tokens that clients send, one per line."`
	TLSCert     string `name:"tls-cert" placeholder:"FILE" help:"Certificate of the server, for TLS."`
	TLSKey      string `name:"tls-key" placeholder:"FILE" help:"Key of the certificate."`
	TLSClientCA string `name:"tls-client-ca" placeholder:"FILE" help:"Clients need a certificate of this CA."`

	Peers     []string      `placeholder:"URL" help:"${peers}"`
	Replica   string        `placeholder:"NAME" help:"${replica}"`
	MaxLeases int           `default:"100000" help:"Number of leases that may be open at once."`
	LeaseMax  time.Duration `default:"10m" help:"Life of a lease of Envoy that no settle ends."`
	Drain     time.Duration `default:"30s" help:"Longest wait for open leases at SIGTERM."`

	Version bool `help:"Print the version."`
}

// help has the help texts that are too long for a tag.
var help = map[string]string{
	"http": "Address of the HTTP API, or unix:/path/to/socket.",
	"grpc": "With --envoy: address of Envoy's rate limit service, or unix:/path/to/socket.",
	"redis": "URL of a Redis to use instead of a table: redis://:password@host:6379/0, rediss://..., " +
		"unix://... ?master_name=NAME is for a Sentinel, ?addr=host:port adds nodes of a cluster.",
	"peers": "URL of another replica, such as http://10.0.0.2:8080, to which calls on its leases are " +
		"forwarded; repeatable, or separated by commas. Replicas have the same tokens.",
	"replica": "Name of this replica, different from those of all others, and the same after a restart. The " +
		"default is the host's name and --http.",
}

// description is the text above the flags.
const description = `Serve the limits of limits.yaml by HTTP, to programs in any language.

Without --table, --endpoint and --redis, what was spent is kept in this process alone, and is lost when it
ends: that is for a first try. Without --token-file or --tls-client-ca, it listens on this machine alone,
since any client that reaches it may spend and give back.

It reads its files again on SIGHUP and when they change. If one has a mistake, what was read before stays in
force. On SIGTERM it admits nothing more, waits for open leases (--drain), and ends.`

// regionName matches what can be a region: a label of a host name. Emulators accept any.
var regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,63}$`)

// choose decides between the command line and environment variables. An empty variable counts as unset. A
// flag that names a store has precedence over a variable that names another one. given reports whether a flag
// is on the command line.
func (f *Flags) choose(given func(name string) bool) error {
	for name, value := range map[string]**string{"table": &f.Table, "namespace": &f.Namespace, "redis": &f.Redis,
		"prefix": &f.Prefix} {
		switch {
		case *value == nil || **value != "":
		case given(name):
			return fmt.Errorf("--%s is empty: pass a value, or leave the flag out", name)
		default:
			*value = nil
		}
	}
	if f.Envoy == "" && (given("grpc") || given("lease-max")) {
		return fmt.Errorf("--grpc and --lease-max are for Envoy: pass --envoy too, or leave them out")
	}
	table := given("table") || given("endpoint") || given("region") || given("namespace")
	switch {
	case given("redis") && !table:
		f.Table, f.Namespace = nil, nil
	case table && !given("redis"):
		f.Redis, f.Prefix = nil, nil
	}
	return nil
}

// check returns a mistake in the flags.
func (f *Flags) check() error {
	switch {
	case f.Redis != nil && f.onTable():
		return fmt.Errorf("--redis names a Redis, and other flags a DynamoDB table: pass one of them")
	case f.Prefix != nil && f.Redis == nil:
		return fmt.Errorf("--prefix is for keys in Redis: pass --redis too")
	case f.Region != "" && !regionName.MatchString(f.Region):
		return fmt.Errorf("--region %q is not the name of an AWS region: pass one, such as eu-west-1", f.Region)
	case f.MaxLeases < 1 || f.MaxLeases > 100_000_000:
		return fmt.Errorf("--max-leases %d is out of range: pass 1 to 100000000", f.MaxLeases)
	case f.LeaseMax < time.Second || f.LeaseMax > 24*time.Hour:
		return fmt.Errorf("--lease-max %v is out of range: pass 1s to 24h", f.LeaseMax)
	case f.Drain < 0 || f.Drain > time.Hour:
		return fmt.Errorf("--drain %v is out of range: pass 0s to 1h", f.Drain)
	case (f.TLSCert == "") != (f.TLSKey == ""):
		return fmt.Errorf("--tls-cert and --tls-key go together: pass both, or none")
	case f.TLSClientCA != "" && f.TLSCert == "":
		return fmt.Errorf("--tls-client-ca needs a certificate of the server: pass --tls-cert and --tls-key too")
	}
	if f.Table != nil {
		if _, ok := operator.TableName(*f.Table); !ok {
			return fmt.Errorf("%s", operator.WrongTable(*f.Table))
		}
	}
	if f.Namespace != nil {
		if err := operator.CheckNamespace(*f.Namespace); err != nil {
			return err
		}
	}
	if f.Redis != nil {
		if err := redisclient.Check(*f.Redis); err != nil {
			return fmt.Errorf("%w (--redis, SLUICE_REDIS_URL)", err)
		}
	}
	if err := f.checkPeers(); err != nil {
		return err
	}
	if err := f.checkAddress("http", f.HTTP); err != nil {
		return err
	}
	if f.Envoy != "" {
		if err := f.checkAddress("grpc", f.GRPC); err != nil {
			return err
		}
	}
	return awsclient.CheckEndpoint(f.Endpoint)
}

// onTable reports whether the flags name a DynamoDB table.
func (f *Flags) onTable() bool {
	return f.Table != nil || f.Endpoint != "" || f.Region != "" || f.Namespace != nil
}

// checkAddress refuses an address of a flag that others reach, unless they have to prove who they are.
func (f *Flags) checkAddress(flag, address string) error {
	if path, ok := strings.CutPrefix(address, "unix:"); ok {
		if path == "" {
			return fmt.Errorf("--%s unix: has no path: pass one, such as unix:/run/sluice.sock", flag)
		}
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("--%s %q is no address: pass one, such as 127.0.0.1:8080 or unix:/run/sluice.sock",
			flag, address)
	}
	ip := net.ParseIP(host)
	if f.TokenFile != "" || f.TLSClientCA != "" || host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return fmt.Errorf("--%s %s is open to other machines, whose programs could spend and give back: pass "+
		"--token-file or --tls-client-ca too, or listen on 127.0.0.1", flag, address)
}

// checkPeers refuses what is no URL of a replica, and peers of a process that shares no store with them.
func (f *Flags) checkPeers() error {
	for _, peer := range f.Peers {
		u, err := url.Parse(peer)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" ||
			strings.Trim(u.Path, "/") != "" {
			return fmt.Errorf("--peers %q is no URL of a replica: pass one such as http://10.0.0.2:8080",
				secrets.URL(peer))
		}
	}
	if len(f.Peers) > 0 && f.Redis == nil && !f.onTable() {
		return fmt.Errorf("--peers are replicas with the same limits: pass --table or --redis too")
	}
	return nil
}

// peers returns the other replicas: nil if there are none. A process with a certificate shows it to them, and
// trusts those that --tls-client-ca has signed, too.
func (f *Flags) peers(own *tls.Config) *peers.Peers {
	if len(f.Peers) == 0 {
		return nil
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 64, IdleConnTimeout: time.Minute}
	if own != nil {
		transport.TLSClientConfig = &tls.Config{
			MinVersion: tls.VersionTLS12, RootCAs: own.ClientCAs,
			GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				return own.GetCertificate(nil)
			},
		}
	}
	urls := make([]string, len(f.Peers))
	for i, peer := range f.Peers {
		urls[i] = strings.TrimRight(peer, "/")
	}
	return peers.New(urls, &http.Client{Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }})
}

// replica returns the name of this replica, which is the same after a restart.
func (f *Flags) replica() string {
	if f.Replica != "" {
		return f.Replica
	}
	host, _ := os.Hostname() // without one, replicas on a machine still differ by their addresses
	return host + " " + f.HTTP
}
