package process

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/envoy"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/logs"
	"github.com/sluice-go/sluice/serve/internal/telemetry"
)

// watchEvery is the time between two looks at the files.
const watchEvery = time.Second

// files are the schema, the rules for Envoy and the tokens, which are read again while the server runs.
type files struct {
	flags     *Flags
	place     *place
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	options   []runtime.Option

	tokens  atomic.Pointer[[]string]
	current *limits.Current
	envoy   *envoy.Current // nil without --envoy
}

// content is what the files have.
type content struct {
	limits *limits.Limits
	rules  *envoy.Rules // nil without --envoy
	tokens []string
}

// read reads the files, and opens the limits. It puts nothing in force.
func (f *files) read() (c content, err error) {
	schema, rules, err := f.flags.readRules()
	if err == nil {
		err = f.flags.fits(schema.Stores)
	}
	if err != nil {
		return c, err
	}
	c.rules = rules
	if c.tokens, err = f.flags.readTokens(); err != nil {
		return c, err
	}
	c.limits, err = schema.Open(f.place.open(), f.options...)
	return c, err
}

// readRules reads the schema and, with --envoy, the rules for it.
func (f *Flags) readRules() (*limits.Schema, *envoy.Rules, error) {
	schema, err := limits.Read(f.File)
	if err != nil || f.Envoy == "" {
		return schema, nil, err
	}
	rules, err := envoy.Read(f.Envoy, schema)
	return schema, rules, err
}

// checkFiles reads the files, and opens nothing.
func (f *Flags) checkFiles() error {
	schema, _, err := f.readRules()
	if err == nil && (f.Redis != nil || f.onTable()) {
		err = f.fits(schema.Stores)
	}
	if err != nil {
		return err
	}
	_, err = f.readTokens()
	return err
}

// start reads the files for the first time.
func (f *files) start() error {
	c, err := f.read()
	if err != nil {
		return err
	}
	f.tokens.Store(&c.tokens)
	f.current = limits.NewCurrent(c.limits, func(err error) {
		f.log.Warn("the limits from before the last reload were not closed properly", slog.Any("error", err))
	})
	if c.rules != nil {
		f.envoy = envoy.NewCurrent(f.current, c.rules)
	}
	return nil
}

// reload reads the files again. If they have a mistake, all stays as it was.
func (f *files) reload(ctx context.Context) {
	c, err := f.read()
	if err == nil {
		if err = c.limits.Check(ctx); err != nil {
			_ = c.limits.Close(ctx) // it has made no calls
		}
	}
	if ctx.Err() != nil {
		return // the process ends
	}
	f.telemetry.Reloaded(ctx, err == nil)
	if err != nil {
		f.log.Error("the files are not in force: what was read before stays in force", slog.Any("error",
			logs.OperatorError{Err: err}))
		return
	}
	f.tokens.Store(&c.tokens)
	if f.envoy != nil {
		f.envoy.Replace(c.limits, c.rules)
	} else {
		f.current.Replace(c.limits)
	}
	f.log.Info("the files were read again", slog.String("file", f.flags.File))
}

// mark is by what a change of a file is noticed.
type mark struct {
	at   time.Time
	size int64
}

// marks returns those of all files; of a missing file, the zero mark.
func (f *files) marks() []mark {
	var all []mark
	for _, name := range []string{f.flags.File, f.flags.Envoy, f.flags.TokenFile} {
		var m mark
		if info, err := os.Stat(name); name != "" && err == nil {
			m = mark{info.ModTime(), info.Size()}
		}
		all = append(all, m)
	}
	return all
}

// watch reloads the files at each signal, and a second after their last change. It returns when ctx ends.
func (f *files) watch(ctx context.Context, signals <-chan os.Signal) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	inForce := f.marks()
	last := inForce
	for {
		select {
		case <-ctx.Done():
			return
		case <-signals:
			inForce = f.marks()
			last = inForce
			f.reload(ctx)
		case <-tick.C:
			now := f.marks()
			if slices.Equal(now, last) && !slices.Equal(now, inForce) {
				inForce = now
				f.reload(ctx)
			}
			last = now
		}
	}
}
