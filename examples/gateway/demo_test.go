package main

import (
	"context"
	"encoding/xml"
	"errors"
	"flag"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/longform"
	"github.com/sluice-go/sluice/internal/tool/vt"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
	"github.com/sluice-go/sluice/runtime/memdynamo"
)

// asProgram is the variable that has this binary run the program on one of the networks.
const asProgram = "GATEWAY_TEST_NETWORK"

var networks = map[string]func(address string) network{
	"tcp": tcp,
	"loses a word": func(address string) network {
		return func(ctx context.Context) (net.Listener, *http.Transport, error) {
			l, transport, err := tcp(address)(ctx)
			if err == nil {
				transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
					conn, err := new(net.Dialer).DialContext(ctx, network, address)
					return lossy{conn}, err
				}
			}
			return l, transport, err
		}
	},
}

// lossy is a client's connection that makes one word of two.
type lossy struct{ net.Conn }

// Read implements net.Conn.
func (l lossy) Read(p []byte) (int, error) {
	n, err := l.Conn.Read(p)
	copy(p[:n], strings.Replace(string(p[:n]), "word word", "wordxword", 1))
	return n, err
}

// sentences are what the checks say, up to their numbers.
var sentences = []string{
	"ok: Clients read ",
	"ok: The table charged what passed on the wire, ",
	"ok: Projects have what their users were charged, and budgets the provider's bill: ",
	"ok: No token was forged: consumed and left are within burst and refill, on all ",
	"ok: At most ",
	"ok: The engine billed what calls state",
}

// held returns which of the sentences text has.
func held(text string) (all []string) {
	for _, s := range sentences {
		if strings.Contains(text, "\n"+s) {
			all = append(all, s)
		}
	}
	return all
}

// TestProcess runs the program without a terminal, as a process: what it prints fits on a screen, together
// with what make prints before. A client that loses a word fails it, with the other sentences still printed.
func TestProcess(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		code   int
		held   []string
		errors string
	}{
		"tcp":          {0, sentences, `^$`},
		"loses a word": {exitFailure, sentences[1:], `^gateway: a reply of \d+ tokens has \d+\n$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if want.code != 0 {
				longform.NoRace(t, "a control, whose broken variant ships nowhere")
			}
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), self, "-for", "3s")
			cmd.Env = append(os.Environ(), asProgram+"="+name)
			var out, errs strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &errs
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if code := cmd.ProcessState.ExitCode(); code != want.code ||
				!slices.Equal(held(out.String()), want.held) ||
				!regexp.MustCompile(want.errors).MatchString(errs.String()) {
				t.Errorf("exit code %d\n%s%s", code, &out, &errs)
			}
			fits(t, out.String(), 24-beforeIt, 44-beforeIt)
			for _, line := range []string{" s: the table is down\n", " s: the table is up again\n", " outage"} {
				if !strings.Contains(out.String(), line) {
					t.Errorf("it did not print %q:\n%s", line, &out)
				}
			}
		})
	}
}

// beforeIt is how many lines make prints before: of limits.yaml, an empty one, and of the generator.
const beforeIt = 16

// fits checks the size of a text, and that it has no controls.
func fits(t *testing.T, text string, least, most int) {
	t.Helper()
	if n := strings.Count(text, "\n"); n < least || n > most {
		t.Errorf("%d lines, want %d to %d:\n%s", n, least, most, text)
	}
	for line := range strings.Lines(text) {
		n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n"))
		if n > columns || strings.Contains(line, "\x1b") {
			t.Errorf("%d columns: %q", n, line)
		}
	}
}

// TestMakeDemo: make prints the limits before it builds anything.
func TestMakeDemo(t *testing.T) {
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("no make on PATH")
	}
	out, err := exec.CommandContext(t.Context(), "make", "-s", "-C", "../..", "demo-limits", "BUILD=.").Output()
	if err != nil {
		t.Fatal(err)
	}
	text := string(out)
	fits(t, text, beforeIt-1, beforeIt)
	for _, line := range []string{
		"\n      month: {money: USD, capacity: 500, window: month, kinds: [org]}\n",
		"\n    on_unavailable: local\n\n"} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in\n%s", line, text)
		}
	}
}

// terminal is a terminal that the program and a person write to.
type terminal struct {
	mu sync.Mutex
	vt.Screen
}

// Write implements io.Writer.
func (t *terminal) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.Screen.Write(p)
}

// demo runs the program in time that takes none, and returns what stays on the terminal.
func demo(t *testing.T, inPlace bool, ctrlC time.Duration, args ...string) *terminal {
	t.Helper()
	s, err := parse(flag.NewFlagSet("gateway", flag.ContinueOnError), args)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() {
		s.duration = 6 * time.Second
	}
	on := &terminal{}
	ctx, interrupt := context.WithCancel(t.Context())
	defer time.AfterFunc(ctrlC, func() {
		_, _ = on.Write([]byte("^C"))
		interrupt()
	}).Stop()
	if err := run(ctx, s, pipes, display{on, inPlace}); err != nil {
		t.Error(err)
	}
	return on
}

// TestDemo runs the program as `make demo` does: all its checks hold, after a Ctrl-C too. On a terminal each
// bar stays once, and neither a ^C nor a colour does.
func TestDemo(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		inPlace   bool
		interrupt time.Duration
		args      []string
		lines     []string // besides
	}{
		"plain": {false, time.Hour, nil, []string{"the table is down", " outage", "429 Too Many Requests"}},
		"on a terminal": {true, time.Hour, nil, []string{" outage", "Retry-After: ",
			"HTTP/1.1 200 OK, degraded: "}},
		"Ctrl-C":              {false, 2 * time.Second, nil, nil},
		"Ctrl-C, on terminal": {true, 2 * time.Second, nil, nil},
		"-v": {false, time.Hour, []string{"-v"}, []string{"BUCKET", "\ndenied ", "\ndegraded ",
			"\nstreams: "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(test.args) > 0 {
				longform.NoRace(t, "it prints more of the run without -v")
			}
			if test.inPlace && test.interrupt == time.Hour {
				longform.Only(t, "TestRecording plays it on a terminal")
			}
			synctest.Test(t, func(t *testing.T) {
				on := demo(t, test.inPlace, test.interrupt, test.args...)
				text := strings.Join(on.Lines(), "\n") + "\n"
				if !slices.Equal(held(text), sentences) || strings.Count(text, "\nmallory  abusive ") != 1 ||
					test.inPlace && strings.Contains(text, "^C") {
					t.Errorf("it shows\n%s", text)
				}
				for _, line := range test.lines {
					if !strings.Contains(text, line) {
						t.Errorf("it does not show %q:\n%s", line, text)
					}
				}
				if len(test.args) == 0 {
					fits(t, text, 19, 44-beforeIt)
				}
				if _, col := on.Cursor(); col != 0 || on.Colour() != "" {
					t.Errorf("the terminal is left at column %d in colour %q", col, on.Colour())
				}
			})
		})
	}
}

// TestScreen: a drawing covers the one before, and what was typed. The control forgets the one before.
func TestScreen(t *testing.T) {
	var good, bad vt.Screen
	at := screen{out: &good}
	for _, text := range []string{"first", "then"} {
		at.draw([]string{"bars", text})
		(&screen{out: &bad}).draw([]string{"bars", text})
		_, _ = good.Write([]byte("^C"))
	}
	at.draw([]string{"bars", "end"})
	if got := good.Lines(); !slices.Equal(got, []string{"bars", "end"}) {
		t.Errorf("it shows %q", got)
	}
	if got := bad.Lines(); !slices.Equal(got, []string{"bars", "first", "bars", "then"}) {
		t.Errorf("the control shows %q", got)
	}
}

// TestNoTerminal: a file is none.
func TestNoTerminal(t *testing.T) {
	f, err := os.Open("demo_test.go")
	if err != nil {
		t.Fatal(err)
	}
	if drawsOn(f) {
		t.Error("a file is said to be a terminal")
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRecording holds docs/demo.svg to what the demo prints, numbers aside.
func TestRecording(t *testing.T) {
	t.Parallel()
	picture, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > 150_000 {
		t.Errorf("docs/demo.svg has %d bytes", len(picture))
	}
	shown, err := textOf(picture)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		printed := demo(t, true, time.Hour).Lines()
		if wrong := stale(shown, printed); len(wrong) > 0 {
			t.Fatalf("docs/demo.svg differs: run `make recording`: %q", wrong)
		}
		// The control: another sentence, and one sentence less.
		at := slices.IndexFunc(shown, func(line string) bool { return strings.HasPrefix(line, sentences[3]) })
		old := slices.Concat(shown[:at], []string{"ok: All is well."}, shown[at+1:])
		if wrong := stale(old, printed); len(wrong) != 2 || wrong[1] != "ok: All is well." ||
			!strings.HasPrefix(wrong[0], sentences[3]) {
			t.Errorf("a wrong sentence: %q", wrong)
		}
	})
}

// textOf returns the lines of text in an SVG.
func textOf(picture []byte) (lines []string, err error) {
	var line struct {
		Text []string `xml:"tspan"`
	}
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		token, err := d.Token()
		if token == nil || err != nil {
			if errors.Is(err, nil) || err.Error() == "EOF" {
				return lines, nil
			}
			return nil, err
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			line.Text = nil
			if err := d.DecodeElement(&line, &e); err != nil {
				return nil, err
			}
			lines = append(lines, strings.TrimSpace(strings.Join(line.Text, "")))
		}
	}
}

var number = regexp.MustCompile(`[0-9]+([,.][0-9]+)*`)

// stale returns the lines of text, numbers aside, that only one of the two has.
func stale(shown, printed []string) (wrong []string) {
	forms := func(lines []string) (all []string) {
		for _, line := range lines {
			if strings.HasPrefix(line, "ok: ") || strings.HasSuffix(line, ":") || strings.HasSuffix(line, ".") {
				all = append(all, number.ReplaceAllString(line, "0"))
			}
		}
		return all
	}
	a, b := forms(shown), forms(printed)
	for _, line := range b {
		if !slices.Contains(a, line) {
			wrong = append(wrong, line)
		}
	}
	for _, line := range a {
		if strings.HasPrefix(line, "ok: ") && !slices.Contains(b, line) {
			wrong = append(wrong, line)
		}
	}
	return wrong
}

// TestLost: the wire counts calls whose caller leaves before the reply, and none that it refuses itself.
func TestLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := memdynamo.New()
		w := &wire{next: engine.HTTPClient()}
		client := engine.Client(func(o *dynamodb.Options) { o.HTTPClient = w })
		if _, err := operator.CreateTable(t.Context(), client, "rate_limits"); err != nil {
			t.Fatal(err)
		}
		engine.Faults().Latency(memdynamo.LogNormal(time.Second, 0))
		ask := func(most time.Duration) error {
			ctx, leave := context.WithTimeout(t.Context(), most)
			defer leave()
			_, err := operator.Inspect(ctx, client, "rate_limits", "user-alice", "gpt-4")
			return err
		}
		if err := ask(time.Minute); err != nil || w.lost.Load() != 0 {
			t.Errorf("a patient call: %v, %d lost", err, w.lost.Load())
		}
		w.cut.Store(true)
		if err := ask(time.Minute); err == nil || w.lost.Load() != 0 {
			t.Errorf("a refused call: %v, %d lost", err, w.lost.Load())
		}
		w.cut.Store(false)
		if err := ask(time.Second); err == nil || w.lost.Load() != 1 {
			t.Errorf("an impatient call: %v, %d lost", err, w.lost.Load())
		}
	})
}
