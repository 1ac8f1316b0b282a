package server_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// slowly sends text over a connection of its own, and returns what the server answers until it closes the
// connection, and when it does.
func (r *rig) slowly(text string) (answer string, took time.Duration) {
	r.Helper()
	conn, err := r.listen.Dial(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	began := time.Now()
	if _, err := io.WriteString(conn, text); err != nil {
		r.Fatal(err)
	}
	got, err := io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrClosedPipe) {
		r.Error(err)
	}
	_ = conn.Close()
	return string(got), time.Since(began)
}

// TestSlowClients: a client that sends its request too slowly loses its connection, as does one that does not
// read its answer. Others are served meanwhile.
func TestSlowClients(t *testing.T) {
	bubble(t, func(r *rig) {
		const head = "POST /v1/api/acquire HTTP/1.1\r\nHost: sluice\r\nContent-Length: 100\r\n"
		for text, test := range map[string]struct {
			answer string
			after  time.Duration
		}{
			head:                         {"", 5 * time.Second},
			head + "\r\n" + `{"entity":`: {"HTTP/1.1 408 ", 10 * time.Second},
			strings.Replace(head, "api", "none", 1) + "\r\n{": {"HTTP/1.1 404 ", 10 * time.Second},
			head + "Origin: http://page\r\n\r\n{":             {"HTTP/1.1 403 ", 10 * time.Second},
			"GET /healthz HTTP/1.1\r\nHost: sluice\r\nContent-Length: 100\r\n\r\n{": {"HTTP/1.1 200 ",
				10 * time.Second},
		} {
			answer, took := r.slowly(text)
			if !strings.HasPrefix(answer, test.answer) || took < test.after || took > test.after+2*time.Second {
				t.Errorf("%q: %q after %v, want %q after %v", text, answer, took, test.answer, test.after)
			}
		}
		if left := r.left("api", user, "tpm"); left != 1000. {
			t.Errorf("left %v: half a request has charged", left)
		}
		for _, text := range []string{
			"POST /v1/api/peek HTTP/1.1\r\nHost: sluice\r\nContent-Length: 38\r\n\r\n" +
				`{"entity": {"user": "1", "org": "7"}} `,
			"POST /v1/leases/x/keep HTTP/1.1\r\nHost: sluice\r\n\r\n",
			"POST /v1/api/peek HTTP/1.1\r\nHost: sluice\r\nOrigin: http://page\r\n\r\n",
			"GET /healthz HTTP/1.1\r\nHost: sluice\r\n\r\n",
			"GET / HTTP/1.1\r\nHost: sluice\r\n\r\n",
		} {
			deaf, err := r.listen.Dial(r.Context())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.WriteString(deaf, text); err != nil {
				t.Fatal(err)
			}
			pass(22 * time.Second)
			_ = deaf.SetDeadline(time.Now().Add(time.Second)) // it fails if the other side is closed
			if _, err := io.WriteString(deaf, "GET /healthz HTTP/1.1\r\n"); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("%q: a client that does not read is still connected: %v", text, err)
			}
			_ = deaf.Close()
		}
		r.acquire("1")
	})
}

// TestPages: a browser's requests for a page are refused, also if the page's host has this machine's address.
func TestPages(t *testing.T) {
	bubble(t, func(r *rig) {
		for _, headers := range [][]string{
			{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-origin"}, {"Origin", "http://sluice"},
			{"Origin", "http://page"}, {"Origin", "null"},
		} {
			a := r.want(r.post("/v1/api/acquire", `{"entity": `+user+`}`, headers...), http.StatusForbidden)
			if !strings.Contains(a.body, `"detail":"A page in a browser has sent the request: `) {
				r.Errorf("no problem: %s", a.body)
			}
		}
		if left := r.left("api", user, "rpm"); left != 10. {
			t.Errorf("left %v: a page has spent", left)
		}
		r.want(r.post("/v1/api/acquire", `{"entity": `+user+`}`, "Sec-Fetch-Site", "none"), http.StatusOK)
	})
}

// TestLargeHeaders: headers of absurd size are refused, as are many connections' worth of them.
func TestLargeHeaders(t *testing.T) {
	bubble(t, func(r *rig) {
		conn, err := r.listen.Dial(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			_, _ = fmt.Fprintf(conn, "GET /healthz HTTP/1.1\r\nHost: sluice\r\nX: %s\r\n\r\n", strings.Repeat("x",
				1<<20))
		}()
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("status %d", resp.StatusCode)
		}
		_ = resp.Body.Close()
		_ = conn.Close()
	})
}

// TestMillion: of a million leases asked for, as many are open as the server allows, and memory does not grow
// with those that are refused. Each has a key of its own.
func TestMillion(t *testing.T) {
	longform.NoRace(t, "it measures memory, with one caller")
	asked, most := 20_000, 1_000
	if longform.Wanted() {
		asked, most = 1_000_000, 10_000
	}
	r := &rig{T: t}
	s, serve := r.handler(most)
	live := func() uint64 {
		goruntime.GC()
		var m goruntime.MemStats
		goruntime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	granted, refused, full := 0, 0, uint64(0)
	for i := range asked {
		body := fmt.Sprintf(`{"entity": {"org": "%d"}, "cost": {"tpm": 1}}`, i%most)
		req := httptest.NewRequest(http.MethodPost, "/v1/api/acquire", strings.NewReader(body))
		req.Header.Set("Idempotency-Key", fmt.Sprint(i))
		w := httptest.NewRecorder()
		serve.ServeHTTP(w, req)
		switch w.Code {
		case http.StatusOK:
			granted++
		case http.StatusServiceUnavailable, http.StatusTooManyRequests:
			refused++
		default:
			t.Fatalf("%d %s", w.Code, w.Body)
		}
		if i == 2*most {
			full = live()
		}
	}
	if open := s.Leases.Stats().Open; granted != most || granted+refused != asked || open != int64(most) {
		t.Errorf("%d granted, %d refused, %d open; want %d granted", granted, refused, open, most)
	}
	if grown := int64(live()) - int64(full); grown > 4<<20 {
		t.Errorf("memory has grown by %d bytes with calls that were refused", grown)
	}
}

// TestDenialAllocates: a denial from memory, which has to be cheap, makes few allocations, those of the
// test's own request included. With a text for each name in the body, there were 87.
func TestDenialAllocates(t *testing.T) {
	longform.NoRace(t, "it counts allocations")
	_, serve := (&rig{T: t}).handler(10)
	denied := func() int {
		req := httptest.NewRequest(http.MethodPost, "/v1/api/acquire",
			strings.NewReader(`{"entity": {"user": "1", "org": "7"}, "cost": {"tpm": 1000}}`))
		w := httptest.NewRecorder()
		serve.ServeHTTP(w, req)
		return w.Code
	}
	if first, second := denied(), denied(); first != http.StatusOK || second != http.StatusTooManyRequests {
		t.Fatalf("%d, %d", first, second)
	}
	if n := testing.AllocsPerRun(200, func() { denied() }); n > 70 {
		t.Errorf("%v allocations", n)
	}
}

// handler returns a server of at most so many leases, and its handler without connections.
func (r *rig) handler(most int) (*server.Server, http.Handler) {
	r.Helper()
	own := newRigWithout(r.T)
	s := server.New(server.Config{Limits: newCurrent(own),
		Replica: "replica", Most: most, Tokens: func() []string { return nil }, Logger: own.logger()})
	return s, s.Handler()
}

// TestManyConnections: beyond the bound, a connection is closed at once, and those that are open are served.
func TestManyConnections(t *testing.T) {
	longform.Only(t, "it opens more connections than a short test should")
	bubble(t, func(r *rig) {
		var open []net.Conn
		for range 20_000 {
			c, err := r.listen.Dial(r.Context())
			if err != nil {
				t.Fatal(err)
			}
			open = append(open, c)
		}
		extra, err := r.listen.Dial(r.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := extra.Read(make([]byte, 1)); err == nil {
			t.Error("one connection too many is served")
		}
		for _, c := range open {
			_ = c.Close()
		}
		pass(time.Second)
		r.acquire("1")
	})
}
