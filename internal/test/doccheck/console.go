package doccheck

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

// prompt is what commands stand behind.
const prompt = "$ "

// step is a command of a block with what it is shown to print.
type step struct {
	command string // of several lines where all but the last end in a backslash
	shown   string
}

// steps returns the commands of a block.
func steps(b block) (all []step, wrong string) {
	continued := false
	if strings.TrimSpace(b.text) == "" {
		return nil, "it has no command: write one, or leave the block out"
	}
	for line := range strings.Lines(b.text) {
		command, prompted := strings.CutPrefix(line, prompt)
		switch {
		case continued:
			all[len(all)-1].command += line
		case b.lang == "sh":
			all = append(all, step{command: line})
		case prompted:
			all = append(all, step{command: command})
		case len(all) == 0:
			return nil, "it does not begin with a command: write `$ ` before commands"
		default:
			all[len(all)-1].shown += line
			continue
		}
		continued = strings.HasSuffix(strings.TrimRight(line, "\n"), `\`)
	}
	return all, ""
}

// shell runs the commands of a document, one after the other, as one of a user's would: what is exported
// stays so.
type shell struct {
	runner *interp.Runner
	out    output
}

// output is what commands print. Those of a pipe run side by side.
type output struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (o *output) Write(text []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.Write(text)
}

// take returns what was printed, and begins anew.
func (o *output) take() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.text.Reset()
	return o.text.String()
}

// run runs b's commands, and compares what they print.
func (d *document) run(ctx context.Context, b block) {
	for _, m := range b.marks {
		if m.verb != given {
			continue
		}
		bring, known := d.Given[m.text]
		if !known {
			d.add(b, "nothing brings about %q: add it to the test's states", m.text)
			return
		}
		bring()
		d.given[m.text] = true
	}
	if d.shell == nil {
		d.shell = &shell{}
		var err error
		if d.shell.runner, err = interp.New(interp.StdIO(nil, &d.shell.out, &d.shell.out),
			interp.ExecHandlers(d.program), interp.OpenHandler(inside)); err != nil {
			d.add(b, "no shell: %v", err)
			return
		}
	}
	all, wrong := steps(b)
	if wrong != "" {
		d.add(b, "%s", wrong)
		return
	}
	var now strings.Builder // what b would show if it showed all
	for _, s := range all {
		printed, failed := d.execute(ctx, s.command)
		if b.lang == "sh" || strings.TrimSpace(s.shown) == leftOutLine { // nothing that is shown says how it ends
			if failed != "" {
				d.add(b, "%s%s fails: %s%s", map[bool]string{true: prompt}[b.lang != "sh"], strings.TrimSpace(s.command),
					failed, printed)
			}
			continue
		}
		now.WriteString(prompt + s.command + printed)
		if want, got := leftOut(d.masked(s.shown), d.masked(printed)); want != got {
			d.add(b, "$ %s(- the document, + what is printed):\n%s", s.command, gocmp.Diff(want, got))
			d.printed[b.line] = &now
		}
	}
}

// execute runs a command line, and returns what it printed and, unless it succeeded, why.
func (d *document) execute(ctx context.Context, command string) (printed, failed string) {
	shown := make([]string, 0, len(d.Real)) // what stands for what is real here
	for i := 0; i+1 < len(d.Real); i += 2 {
		shown = append(shown, d.Real[i+1], d.Real[i])
	}
	file, err := syntax.NewParser().Parse(strings.NewReader(strings.NewReplacer(d.Real...).Replace(command)), "")
	if err != nil {
		return "no shell reads this: " + err.Error() + "\n", "no command"
	}
	d.shell.out.take()
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(d.Timeout, time.Minute))
	defer cancel()
	for _, stmt := range file.Stmts {
		if err := d.shell.runner.Run(ctx, stmt); err != nil && failed == "" {
			failed = err.Error() + "\n"
		}
	}
	if ctx.Err() != nil {
		return "it does not end: " + ctx.Err().Error() + "\n", failed
	}
	return strings.NewReplacer(shown...).Replace(d.shell.out.take()), failed
}

// inside opens files, those in the folder that commands run in for writing too.
func inside(ctx context.Context, path string, flag int, perm os.FileMode) (io.ReadWriteCloser, error) {
	if flag&(os.O_WRONLY|os.O_RDWR) != 0 && path != os.DevNull && !filepath.IsLocal(path) {
		return nil, &os.PathError{Op: "write", Path: path,
			Err: errors.New("is outside of the folder: documents write below it")}
	}
	return interp.DefaultOpenHandler()(ctx, path, flag, perm)
}

// program runs sluice, in this process, and of other programs those that are on every machine.
func (d *document) program(next interp.ExecHandlerFunc) interp.ExecHandlerFunc {
	return func(ctx context.Context, args []string) error {
		at := interp.HandlerCtx(ctx)
		for _, prefix := range [][]string{{"go", "tool"}, {"go", "run"}} {
			if rest := args[min(len(args), 2):]; len(rest) > 0 && slices.Equal(args[:2], prefix) &&
				(rest[0] == "sluice" || rest[0] == "./cmd/sluice") {
				args = append([]string{"sluice"}, rest[1:]...)
			}
		}
		switch args[0] {
		case "sluice":
			restore := export(at.Env)
			defer restore()
			if code := d.Sluice(ctx, args[1:], at.Stdout, at.Stderr); code != 0 {
				return interp.ExitStatus(code)
			}
			return nil
		case "rm":
			if i := slices.IndexFunc(args[1:], func(arg string) bool { return !filepath.IsLocal(arg) }); i >= 0 {
				_, err := fmt.Fprintf(at.Stderr, "rm: %s is outside of the folder\n", args[i+1])
				return errors.Join(err, interp.ExitStatus(1))
			}
			return next(ctx, args)
		case "cat", "cut", "grep", "head", "sed", "sort", "tail", "wc":
			return next(ctx, args)
		}
		_, err := fmt.Fprintf(at.Stderr, "doccheck runs no %s: mark the block as not run\n", args[0])
		return errors.Join(err, interp.ExitStatus(127))
	}
}

// export has the process know what was exported in the shell, until restore is called.
func export(env expand.Environ) (restore func()) {
	before := map[string]string{}
	for name, v := range env.Each {
		if old, ok := os.LookupEnv(name); v.Exported && (!ok || old != v.Str) {
			before[name] = old
			_ = os.Setenv(name, v.Str)
			if !ok {
				before[name] = unset
			}
		}
	}
	return func() {
		for name, old := range before {
			if old == unset {
				_ = os.Unsetenv(name)
				continue
			}
			_ = os.Setenv(name, old)
		}
	}
}

// unset stands for a variable that was not there: none has a NUL.
const unset = "\x00"

// masked takes from text what is another every time.
func (d *document) masked(text string) string {
	for _, m := range d.Masked {
		text = m.ReplaceAllString(text, "(masked)")
	}
	return text
}

// leftOutLine stands for lines of what a command prints.
const leftOutLine = "..."

// leftOut returns shown and printed without the lines for which `...` stands in shown: as many as it takes.
func leftOut(shown, printed string) (string, string) {
	var kept []string
	rest, skip := printed, false
	for line := range strings.Lines(shown) {
		if strings.TrimSpace(line) == leftOutLine {
			skip = true
			continue
		}
		if skip {
			i := strings.Index("\n"+rest, "\n"+line)
			if i < 0 {
				return shown, printed
			}
			rest, skip = rest[i:], false
		}
		after, ok := strings.CutPrefix(rest, line)
		if !ok {
			return shown, printed
		}
		kept, rest = append(kept, line), after
	}
	if rest != "" && !skip {
		return shown, printed
	}
	same := strings.Join(kept, "")
	return same, same
}
