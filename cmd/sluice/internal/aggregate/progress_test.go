package aggregate

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/sluice-go/sluice/runtime/usage/poll"
)

// TestAggregateProgress: on a terminal a line that is written over, at once where all is read, and makes room
// for what the log says; elsewhere a line a minute.
func TestAggregateProgress(t *testing.T) {
	for terminal, want := range map[bool]string{
		true: "<1,200 records, 800 counted, 2m behind<1,300 records, 900 counted, up to date" +
			"<                                      <level=WARN msg=hm\n<2,000 records, 1,100 counted, 1s behind<  " +
			"                                     <",
		false: "1,200 records, 800 counted, 2m behind\nlevel=WARN msg=hm\n2,000 records, 1,100 counted, 1s " +
			"behind\n",
	} {
		var out strings.Builder
		began := time.Unix(0, 0)
		now := began
		a := newProgress(&out, terminal, func() time.Time { return now })
		log := slog.New(slog.NewTextHandler(a,
			&slog.HandlerOptions{ReplaceAttr: func(_ []string, at slog.Attr) slog.Attr {
				if at.Key == slog.TimeKey {
					return slog.Attr{}
				}
				return at
			}}))
		for _, at := range []struct {
			ms int
			poll.Progress
		}{
			{999, poll.Progress{Records: 1000, Behind: time.Minute}},
			{1000, poll.Progress{Records: 1200, Counted: 800, Behind: 2 * time.Minute}},
			{1100, poll.Progress{Records: 1250, Counted: 850, Behind: time.Second}},
			{1150, poll.Progress{Records: 1300, Counted: 900}},
			{1160, poll.Progress{Records: 1300, Counted: 900, Behind: time.Millisecond}},
			{62_000, poll.Progress{Records: 2000, Counted: 1100, Behind: time.Second}},
		} {
			if at.ms == 62_000 {
				log.Warn("hm")
			}
			now = began.Add(time.Duration(at.ms) * time.Millisecond)
			a.report(at.Progress)
		}
		if got := a.end(); got.Records != 2000 {
			t.Errorf("ended at %+v", got)
		}
		if got := strings.ReplaceAll(out.String(), "\r", "<"); got != want {
			t.Errorf("terminal %v:\n%q\nwant\n%q", terminal, got, want)
		}
	}
}

// TestAggregateWrong: what was not counted is said, and fails.
func TestAggregateWrong(t *testing.T) {
	for _, test := range []struct {
		came summary
		want string
	}{
		{summary{Records: 5, Behind: 4}, ""},
		{summary{Poisoned: 1200}, "sluice: 1,200 records could not be read and are not counted: see FILE"},
		{summary{Poisoned: 1, Lost: 2}, "sluice: 1 record could not be read and is not counted: see FILE\n" +
			"sluice: records of 2 shards may be lost: the stream keeps them for 24 hours, and they were older when " +
			"they were to be read; windows of that time may be without them"},
	} {
		got := ""
		if err := test.came.wrong("FILE"); err != nil {
			got = err.Error()
		}
		if got != test.want {
			t.Errorf("%+v: got\n%s\nwant\n%s", test.came, got, test.want)
		}
	}
}
