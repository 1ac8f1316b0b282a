package process_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"

	"github.com/sluice-go/sluice/serve/internal/process"
)

func TestMain(m *testing.M) {
	redis.SetLogger(&logging.VoidLogger{}) // as the command does
	if os.Getenv(asChild) != "" {
		runChild()
	}
	m.Run()
}

const schema = `version: 1
owner: acme
revision: 1
go: {package: limits}
entities: {user: {}}
resources:
  api:
    limits: {rpm: {capacity: %d, every: 1m, per_call: 1}}
    entities: {user: {}}
    on_unavailable: deny
`

// running is a process that serves.
type running struct {
	*testing.T

	folder string
	url    string
	grpc   net.Addr // nil without --envoy
	client *http.Client
	reload chan os.Signal
	said   *output
	stop   context.CancelFunc
	ended  chan int
}

// output is what a process has written so far.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// write writes a file in r's folder.
func (r *running) write(name, text string) {
	r.Helper()
	path := filepath.Join(r.folder, name)
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		r.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		r.Fatal(err)
	}
}

// start starts a process, which ends with the test.
func start(t *testing.T, folder string, flags ...string) *running {
	t.Helper()
	r := &running{T: t, folder: folder, reload: make(chan os.Signal), said: &output{}, ended: make(chan int, 1)}
	ctx, stop := context.WithCancel(context.Background())
	r.stop = stop
	serving := make(chan [2]net.Addr, 1)
	p := process.Process{Stdout: r.said, Stderr: r.said, Reload: r.reload,
		Serving: func(http, grpc net.Addr) { serving <- [2]net.Addr{http, grpc} }}
	file := filepath.Join(folder, "limits.yaml")
	if _, err := os.Stat(file); err != nil {
		r.write("limits.yaml", fmt.Sprintf(schema, 100_000))
	}
	args := append([]string{"--file", file, "--http", "127.0.0.1:0", "--drain", "0s"}, flags...)
	go func() { r.ended <- p.Run(ctx, args) }()
	select {
	case at := <-serving:
		r.url = "http://" + at[0].String()
		r.grpc = at[1]
	case code := <-r.ended:
		t.Fatalf("exit code %d: %s", code, r.said)
	}
	transport := &http.Transport{MaxIdleConnsPerHost: 100}
	r.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		select {
		case <-r.ended:
		case <-time.After(20 * time.Second):
			t.Errorf("it does not end: %s", r.said)
		}
		if t.Failed() {
			t.Log(r.said)
		}
	})
	return r
}

// post calls a path.
func (r *running) post(path, body string, headers ...string) (status int, text string) {
	r.Helper()
	req, err := http.NewRequestWithContext(r.Context(), http.MethodPost, r.url+path, strings.NewReader(body))
	if err != nil {
		r.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := r.client.Do(req)
	if err != nil {
		r.Error(err)
		return 0, ""
	}
	defer func() { _ = resp.Body.Close() }()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		r.Error(err)
	}
	return resp.StatusCode, string(got)
}

// get returns the status of a path.
func (r *running) get(path string) int {
	r.Helper()
	resp, err := r.client.Get(r.url + path)
	if err != nil {
		r.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

const acquire, user = "/v1/api/acquire", `{"entity": {"user": "alice"}}`

// await waits until the process has said a text so often.
func (r *running) await(text string, times int) {
	r.Helper()
	deadline := time.After(20 * time.Second)
	for strings.Count(r.said.String(), text) < times {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			r.Fatalf("it has not said %q %d times: %s", text, times, r.said)
		}
	}
}

// TestReload: while clients call, a changed file takes effect, one with a mistake changes nothing, and no
// call is refused. Leases of before are settled.
func TestReload(t *testing.T) {
	r := start(t, t.TempDir())
	_, granted := r.post(acquire, user)
	var before struct{ Lease string }
	if err := json.Unmarshal([]byte(granted), &before); err != nil {
		t.Fatal(err)
	}
	stop, calls := make(chan struct{}), atomic.Int64{}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if status, text := r.post(acquire, user); status != http.StatusOK {
					t.Errorf("%d %s", status, text)
					return
				}
				calls.Add(1)
			}
		})
	}
	r.write("limits.yaml", fmt.Sprintf(schema, 200_000)+"  more: {limits: {rps: {capacity: 1, every: 1s}}, "+
		"entities: {user: {}}, on_unavailable: deny}\n")
	r.reload <- nil
	r.await("were read again", 1)
	if status, text := r.post("/v1/more/peek", user); status != http.StatusOK {
		t.Errorf("a new resource: %d %s", status, text)
	}
	r.write("limits.yaml", "version: 1\nowner: acme\nrevisio: 1\n")
	r.reload <- nil
	r.await("not in force", 1)
	if status, text := r.post("/v1/more/peek", user); status != http.StatusOK {
		t.Errorf("after a mistake: %d %s", status, text)
	}
	r.write("limits.yaml", fmt.Sprintf(schema, 300_000))
	r.await("were read again", 2) // without a signal
	if status, _ := r.post("/v1/more/peek", user); status != http.StatusNotFound {
		t.Errorf("a resource that was removed: %d", status)
	}
	close(stop)
	callers.Wait()
	t.Logf("%d calls", calls.Load())
	if status, text := r.post("/v1/leases/"+before.Lease+"/settle", `{}`); status != http.StatusOK {
		t.Errorf("a lease of before: %d %s", status, text)
	}
	if said := r.said.String(); !strings.Contains(said, "limits.yaml:3:1: UNKNOWN_KEY") ||
		strings.Contains(said, "alice") {
		t.Errorf("it says %s", said)
	}
}

// TestDrain: once it is to end, a process admits nothing more, and settles until its leases have ended.
func TestDrain(t *testing.T) {
	r := start(t, t.TempDir(), "--drain", "5s")
	_, granted := r.post(acquire, user)
	var open struct{ Lease string }
	if err := json.Unmarshal([]byte(granted), &open); err != nil {
		t.Fatal(err)
	}
	if status := r.get("/readyz"); status != http.StatusOK {
		t.Errorf("ready: %d", status)
	}
	r.stop()
	r.await("ending", 1)
	for _, path := range []string{"/readyz", "/healthz"} {
		if status := r.get(path); (status == http.StatusOK) != (path == "/healthz") {
			t.Errorf("%s: %d", path, status)
		}
	}
	if status, text := r.post(acquire, user); status != 503 || !strings.Contains(text, "about to end") {
		t.Errorf("%d %s", status, text)
	}
	select {
	case r.reload <- nil:
		t.Error("it reads files again while it ends")
	case <-time.After(100 * time.Millisecond):
	}
	if status, text := r.post("/v1/leases/"+open.Lease+"/settle", `{}`); status != http.StatusOK {
		t.Errorf("%d %s", status, text)
	}
	select {
	case code := <-r.ended:
		r.ended <- code
		if code != 0 {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(4 * time.Second):
		t.Error("it waits though no lease is open")
	}
}

// TestToken: without a token that is in the file now, nothing but health is served.
func TestToken(t *testing.T) {
	folder := t.TempDir()
	tokens := filepath.Join(folder, "tokens")
	const one, two = "0123456789abcdef", "fedcba9876543210"
	if err := os.WriteFile(tokens, []byte("# a comment\n"+one+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := start(t, folder, "--token-file", tokens)
	want := func(status int, headers ...string) {
		t.Helper()
		if got, text := r.post(acquire, user, headers...); got != status {
			t.Errorf("%v: %d %s, want %d", headers, got, text, status)
		}
	}
	want(401)
	want(401, "Authorization", "Bearer "+two)
	want(401, "Authorization", "Basic "+one)
	want(401, "Authorization", "Bearer "+one+"0")
	want(401, "Authorization", one)
	want(200, "Authorization", "Bearer "+one)
	if status := r.get("/metrics"); status != 401 {
		t.Errorf("metrics: %d", status)
	}
	if status := r.get("/healthz"); status != 200 {
		t.Errorf("health: %d", status)
	}
	r.write("tokens", two+"\n")
	r.reload <- nil
	r.await("were read again", 1)
	want(401, "Authorization", "Bearer "+one)
	want(200, "Authorization", "Bearer "+two)
	want(403, "Authorization", "Bearer "+two, "Sec-Fetch-Site", "cross-site") // a page in a browser
}

// TestUnixSocket: a socket serves, and one that a dead process has left is replaced.
func TestUnixSocket(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "s")
	left, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	left.SetUnlinkOnClose(false)
	if err := left.Close(); err != nil {
		t.Fatal(err)
	}
	r := start(t, folder, "--http", "unix:"+path)
	r.url = "http://sluice"
	r.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", path)
	}}
	if status, text := r.post(acquire, user); status != 200 {
		t.Errorf("%d %s", status, text)
	}
	r.client.CloseIdleConnections()
}

// TestTakenSocket: what is at the path is not removed unless it is the socket of a process that has ended. A
// process that is too busy to accept another connection has not.
func TestTakenSocket(t *testing.T) {
	folder := t.TempDir()
	file, socket := filepath.Join(folder, "file"), filepath.Join(folder, "socket")
	r := &running{T: t, folder: folder}
	r.write("file", "kept")
	r.write("limits.yaml", fmt.Sprintf(schema, 1))
	busy(t, socket)
	for _, path := range []string{file, socket} {
		var said output
		ctx, cancel := context.WithCancel(t.Context())
		p := process.Process{Stdout: &said, Stderr: &said, Serving: func(net.Addr, net.Addr) { cancel() }}
		args := []string{"--file", filepath.Join(folder, "limits.yaml"), "--http", "unix:" + path}
		code := p.Run(ctx, args)
		cancel()
		if code != 1 ||
			!strings.Contains(said.String(), "unix:"+path+" is in use: choose another path") {
			t.Errorf("exit code %d, %s", code, &said)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Error(err)
		}
	}
}

// TestMutualTLS: a client needs a certificate of the CA.
func TestMutualTLS(t *testing.T) {
	folder := t.TempDir()
	cert, key, pair, pool := certificate(t, folder)
	r := start(t, folder, "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", cert)
	r.url = strings.Replace(r.url, "http:", "https:", 1)
	for _, certificates := range [][]tls.Certificate{nil, {pair}} {
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, Certificates: certificates}}
		client := &http.Client{Transport: transport}
		resp, err := client.Get(r.url + "/healthz")
		if (err == nil) != (certificates != nil) {
			t.Errorf("%d certificates: %v", len(certificates), err)
		}
		if err == nil {
			_ = resp.Body.Close()
		}
		transport.CloseIdleConnections()
	}
}

// certificate writes a certificate for 127.0.0.1, and its key.
func certificate(t *testing.T, folder string) (cert, key string, pair tls.Certificate, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "sluice"}, NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(folder, "cert.pem"), filepath.Join(folder, "key.pem")
	for name, block := range map[string]*pem.Block{cert: {Type: "CERTIFICATE", Bytes: der},
		key: {Type: "PRIVATE KEY", Bytes: pkcs8}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if pair, err = tls.LoadX509KeyPair(cert, key); err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return cert, key, pair, pool
}

// TestFlags: a mistake in the command line is an error with its cure.
func TestFlags(t *testing.T) {
	t.Setenv("SLUICE_TABLE", "")
	folder := t.TempDir()
	file, tokens := filepath.Join(folder, "limits.yaml"), filepath.Join(folder, "tokens")
	for name, text := range map[string]string{file: fmt.Sprintf(schema, 1), tokens: "short\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("SLUICE_REDIS_URL", "") // as if it were not set
	for flags, test := range map[string]struct {
		code int
		want string
	}{
		"--check":                             {0, ""},
		"--version":                           {0, "sluice-serve "},
		"--http :8080":                        {2, "--http :8080 is open to other machines"},
		"--http 0.0.0.0:1":                    {2, "pass --token-file or --tls-client-ca too"},
		"--http 8080":                         {2, `--http "8080" is no address`},
		"--http unix:":                        {2, "has no path"},
		"--redis redis://h --table abc":       {2, "--redis names a Redis, and other flags a DynamoDB table"},
		"--redis redis://:pw@h --region a":    {2, "pass one of them"},
		"--region eu-west-1 --check":          {0, ""}, // the flag has precedence
		"--prefix p":                          {2, "--prefix is for keys in Redis"},
		"--table= ":                           {2, "--table is empty"},
		"--table a":                           {2, `table "a" is not a table's name`},
		"--region a/b":                        {2, "not the name of an AWS region"},
		"--endpoint x --table abc":            {2, "not a URL"},
		"--peers http://h":                    {2, "--peers are replicas with the same limits"},
		"--peers h:1 --table abc":             {2, `--peers "h:1" is no URL of a replica`},
		"--peers http://u:pw@h/x --table abc": {2, "is no URL of a replica"},
		"--max-leases 0":                      {2, "--max-leases 0 is out of range"},
		"--drain 2h":                          {2, "--drain"},
		"--tls-cert a":                        {2, "--tls-cert and --tls-key go together"},
		"--tls-client-ca a":                   {2, "needs a certificate of the server"},
		"--tls-cert a --tls-key b":            {1, "--tls-cert, --tls-key: open a"},
		"--tls-key b --tls-cert a":            {1, ": pass files in PEM, of one pair"},
		"--token-file " + folder:              {1, "is a directory: pass a file with a token in each line"},
		"--token-file " + tokens:              {1, "tokens:1: a token has 5 bytes, at least 16 are needed"},
		"--file " + folder + "/none.yaml":     {1, "pass --file"},
		"--redis redis://127.0.0.1:1":         {1, "127.0.0.1:1 does not answer as Redis does"},
		"--check --redis nonsense":            {2, "no URL of a Redis: want redis://[[user]:password@]host"},
		"--check --redis redis://:pw@h/x":     {2, "want redis://[[user]:password@]host"},
		"--check --redis redis://h":           {1, "limits.yaml does not list redis in its stores: add it, or"},
		"--grpc 127.0.0.1:0":                  {2, "--grpc and --lease-max are for Envoy: pass --envoy too"},
		"--http 127.0.0.1:99999":              {1, "--http 127.0.0.1:99999: listen tcp: address 99999: invalid"},
		"--http unix:" + folder + "/no/s":     {1, "choose a path in a folder that is there"},
	} {
		var said output
		p := process.Process{Stdout: &said, Stderr: &said}
		args := append([]string{"--file", file}, strings.Fields(flags)...)
		if code := p.Run(t.Context(), args); code != test.code || !strings.Contains(said.String(), test.want) {
			t.Errorf("%s: exit code %d, %s; want %d, %s", flags, code, &said, test.code, test.want)
		}
		if strings.Contains(said.String(), "pw") {
			t.Errorf("%s: the password is printed", flags)
		}
	}
}

// TestVariables: a flag has precedence over an environment variable that names another store.
func TestVariables(t *testing.T) {
	file := filepath.Join(t.TempDir(), "limits.yaml")
	if err := os.WriteFile(file, []byte(fmt.Sprintf(schema, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_REDIS_URL", "redis://127.0.0.1:1")
	for flags, want := range map[string]string{
		"":                             "redis://127.0.0.1:1 does not answer as Redis does",
		"--table abc --region eu/west": "--region",
	} {
		var said output
		ctx, cancel := context.WithCancel(t.Context())
		p := process.Process{Stdout: &said, Stderr: &said, Serving: func(net.Addr, net.Addr) { cancel() }}
		p.Run(ctx, append([]string{"--file", file, "--http", "127.0.0.1:0"}, strings.Fields(flags)...))
		cancel()
		if !strings.Contains(said.String(), want) {
			t.Errorf("%q: %s, want %s", flags, &said, want)
		}
	}
}
