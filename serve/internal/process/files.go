package process

import (
	"context"
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/logs"
	"github.com/sluice-go/sluice/serve/internal/telemetry"
)

// watched is how often files are looked at.
const watched = time.Second

// files are the schema and the tokens, which are read again while the server runs.
type files struct {
	flags     *Flags
	place     *place
	log       *slog.Logger
	telemetry *telemetry.Telemetry
	options   []runtime.Option

	tokens  atomic.Pointer[[]string]
	current *limits.Current
}

// read reads the files, and opens the limits. Nothing is changed by that.
func (f *files) read() (*limits.Limits, []string, error) {
	schema, err := limits.Read(f.flags.File)
	if err == nil {
		err = f.place.fits(f.flags.File, schema.Stores)
	}
	if err != nil {
		return nil, nil, err
	}
	tokens, err := f.flags.readTokens()
	if err != nil {
		return nil, nil, err
	}
	l, err := schema.Open(f.place.open(), f.options...)
	return l, tokens, err
}

// checkFiles reads the files, and opens nothing.
func (f *Flags) checkFiles() error {
	if _, err := limits.Read(f.File); err != nil {
		return err
	}
	_, err := f.readTokens()
	return err
}

// start reads the files for the first time.
func (f *files) start() error {
	l, tokens, err := f.read()
	if err != nil {
		return err
	}
	f.tokens.Store(&tokens)
	f.current = limits.NewCurrent(l, func(err error) {
		f.log.Warn("limits of before are not closed properly", slog.Any("error", err))
	})
	return nil
}

// reload reads the files again. If they have a mistake, all stays as it was.
func (f *files) reload(ctx context.Context) {
	l, tokens, err := f.read()
	if err == nil {
		if err = l.Check(ctx); err != nil {
			_ = l.Close(ctx) // it has made no calls
		}
	}
	f.telemetry.Reloaded(ctx, err == nil)
	if err != nil {
		f.log.Error("the files are not in force: those of before are", slog.Any("error",
			logs.OperatorError{Err: err}))
		return
	}
	f.tokens.Store(&tokens)
	f.current.Replace(l)
	f.log.Info("the files were read again", slog.String("file", f.flags.File))
}

// mark is what shows that a file has changed.
type mark struct {
	at   time.Time
	size int64
}

// marks returns those of all files; of a missing file, the zero mark.
func (f *files) marks() []mark {
	var all []mark
	for _, name := range []string{f.flags.File, f.flags.TokenFile} {
		var m mark
		if info, err := os.Stat(name); name != "" && err == nil {
			m = mark{info.ModTime(), info.Size()}
		}
		all = append(all, m)
	}
	return all
}

// watch reloads the files at each signal, and when they have changed and then not for a second. It ends with
// ctx.
func (f *files) watch(ctx context.Context, signals <-chan os.Signal) {
	tick := time.NewTicker(watched)
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
