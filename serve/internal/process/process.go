package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/internal/tool/redisclient"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/logs"
	"github.com/sluice-go/sluice/serve/internal/server"
)

// Exit codes, as those of `sluice`.
const (
	exitOK = iota
	exitFailure
	exitUsage
)

// Process is one run of sluice-serve.
type Process struct {
	Stdout, Stderr io.Writer
	Reload         <-chan os.Signal // the files are to be read again

	// Serving is called with the server's addresses once it answers; it may be nil. grpc is nil without --envoy.
	Serving func(http, grpc net.Addr)
}

// Run serves until ctx ends, and returns the exit code. args are without the program's name.
func (p *Process) Run(ctx context.Context, args []string) int {
	flags, exit := &Flags{}, -1
	vars := kong.Vars{}
	maps.Copy(vars, help)
	parser, err := kong.New(flags, kong.Name("sluice-serve"), kong.Description(description), vars,
		kong.Writers(p.Stdout, p.Stderr), kong.Exit(func(code int) { exit = code }))
	if err != nil {
		return p.fail(err, exitFailure)
	}
	command, err := parser.Parse(args)
	switch {
	case exit >= 0: // it has printed help
		return exit
	case err == nil && flags.Version:
		_, _ = fmt.Fprintln(p.Stdout, "sluice-serve", version())
		return exitOK
	case err == nil:
		if err = flags.choose(given(command)); err == nil {
			err = flags.check()
		}
	}
	if err != nil {
		return p.fail(fmt.Errorf("%w; run `sluice-serve --help`", err), exitUsage)
	}
	if err := p.serve(ctx, flags); err != nil {
		return p.fail(err, exitFailure)
	}
	return exitOK
}

// given returns a function that reports whether a flag is on the command line.
func given(command *kong.Context) func(name string) bool {
	return func(name string) bool {
		return slices.ContainsFunc(command.Path, func(at *kong.Path) bool {
			return at.Flag != nil && at.Flag.Name == name
		})
	}
}

// fail prints an error and returns the exit code.
func (p *Process) fail(err error, code int) int {
	text := err.Error()
	if _, shown := errors.AsType[*redisclient.URLError](err); !shown { // it shows how a URL has a password
		text = secrets.Web(secrets.Redis(text))
	}
	_, asIs := errors.AsType[gen.Problems](err)
	_, rules := errors.AsType[*envoy.FileError](err)
	if !asIs && !rules && !strings.HasPrefix(text, "sluice: ") {
		text = "sluice: " + text
	}
	_, _ = fmt.Fprintln(p.Stderr, strings.TrimRight(text, "\n"))
	return code
}

// version returns the version of the module, as the go command recorded it.
func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}

// serve is Run with flags.
func (p *Process) serve(ctx context.Context, flags *Flags) error {
	log := logs.New(p.Stderr)
	secure, err := flags.tls()
	if err == nil && flags.Check {
		err = flags.checkFiles()
	}
	if err != nil || flags.Check {
		return err
	}
	defer SpaceCollections()()
	at, err := flags.place(ctx)
	if err != nil {
		return err
	}
	defer at.close()
	measured, err := newTelemetry(ctx, log)
	if err != nil {
		return err
	}
	defer endTelemetry(ctx, measured, log)
	f := &files{flags: flags, place: at, log: log, telemetry: measured,
		options: []runtime.Option{runtime.WithLogger(log), runtime.WithObserver(measured.Observer)}}
	if err := f.start(); err != nil {
		return err
	}
	var grpc *envoyServer
	s := server.New(server.Config{
		End:    func(ctx context.Context) { grpc.end(ctx) },
		Limits: f.current, Replica: flags.replica(), Most: flags.MaxLeases, Logger: log,
		Peers:   flags.peers(secure),
		Version: version(),
		Tokens:  func() []string { return *f.tokens.Load() }, Metrics: measured.Handler, Measure: measured.Request,
		Trace: measured.Trace,
	})
	if err := measured.Watch(s.Leases); err != nil {
		return err
	}
	if err := p.setUp(ctx, f, s); err != nil {
		return err
	}
	l, err := listen(ctx, "http", flags.HTTP)
	if err != nil {
		return err
	}
	if grpc, err = newEnvoyServer(ctx, f, s, secure); err != nil {
		_ = l.Close()
		return err
	}
	log.Info("serving", slog.String("http", l.Addr().String()), slog.String("grpc", grpc.address()),
		slog.String("file", flags.File), slog.String("store", at.name), slog.String("version", version()))
	if at.loses {
		log.Warn("what was spent is kept in this process alone, and is lost when it ends: pass --table or --redis")
	}
	if p.Serving != nil {
		p.Serving(l.Addr(), grpc.addr())
	}
	return p.run(ctx, f, s, append(grpc.serving(), func() error { return s.Serve(l, secure) })...)
}

// run serves until ctx ends, and then drains.
func (p *Process) run(ctx context.Context, f *files, s *server.Server, serve ...func() error) error {
	running, stop := context.WithCancel(context.WithoutCancel(ctx))
	var under sync.WaitGroup
	under.Go(func() { s.Run(running) })
	watching, unwatch := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { f.watch(watching, p.Reload) })
	served := make(chan error, len(serve))
	for _, one := range serve {
		under.Go(func() { served <- one() })
	}
	defer under.Wait()
	defer stop()
	drain, failed := f.flags.Drain, error(nil)
	select {
	case failed = <-served:
		drain = 0
	case <-ctx.Done():
		f.log.Info("ending: nothing more is admitted", slog.String("drain", drain.String()))
	}
	unwatch()
	watch.Wait() // no limits are opened any more
	wait, cancel := context.WithTimeout(running, drain)
	defer cancel()
	if err := s.Drain(wait); failed == nil {
		failed = err
		f.log.Info("ended")
	}
	return failed
}

// checkEvery is the time between two checks of a store that does not answer.
const checkEvery = 5 * time.Second

// setUp checks the store. It fails if the installation is wrong. If the store does not answer, the server
// serves by its failure policy, and is ready once it does.
func (p *Process) setUp(ctx context.Context, f *files, s *server.Server) error {
	l := f.current.Use()
	err := l.Check(ctx)
	l.Drop()
	if err == nil {
		s.Ready()
		return nil
	}
	if _, down := errors.AsType[*runtime.UnavailableError](err); !down {
		return err
	}
	f.log.Error("the store does not answer: calls get what on_unavailable says until it does",
		slog.String("store", f.place.name), slog.Any("error", err))
	go func() {
		for err != nil {
			select {
			case <-time.After(checkEvery):
			case <-ctx.Done():
				return
			}
			l := f.current.Use()
			err = l.Check(ctx)
			l.Drop()
		}
		s.Ready()
		f.log.Info("the store answers")
	}()
	return nil
}
