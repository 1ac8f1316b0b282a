package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/sluice-go/sluice/examples/regions/limits"
	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// lookout watches what buckets have of the limit, in all regions.
type lookout struct {
	all          []*place
	every        time.Duration // between two looks
	whole, floor int64         // G, and what every region keeps of it

	looks int
	most  int64      // that the buckets of all regions had together, of all looks
	now   []int64    // by region, as of the last look
	calls [][2]int64 // granted and denied by region, as of the last line
	lines []second
}

// second is what a line says.
type second struct {
	quotas, granted, denied []int64
	events                  []string
}

func newLookout(all []*place) *lookout {
	whole := all[0].config.Specs[0].Kinds[0].Limits[0]
	return &lookout{
		all: all, every: 100 * time.Millisecond, calls: make([][2]int64, len(all)),
		whole: whole.Capacity / bucket.Milli, floor: all[0].shared().Keeps(whole).Capacity / bucket.Milli,
	}
}

// look reads the buckets: what one has is what is enforced in its region, whatever is stored beside it. That
// one region is read after the other does not matter: a quota that moves is nowhere for a window.
func (l *lookout) look(ctx context.Context) error {
	now, sum := make([]int64, len(l.all)), int64(0)
	for i, p := range l.all {
		img, err := operator.Inspect(ctx, p.client, table, "user-1", limits.Chat)
		if err != nil {
			return err
		}
		if img != nil {
			now[i] = img.Extra[0].Capacity / bucket.Milli
		}
		sum += now[i]
	}
	l.looks, l.now, l.most = l.looks+1, now, max(l.most, sum)
	return nil
}

// line closes a second, and says what was in it.
func (l *lookout) line(n int) string {
	s := second{quotas: l.now}
	var text strings.Builder
	fmt.Fprintf(&text, "%3d s", n)
	sum, granted := int64(0), int64(0)
	for i, p := range l.all {
		before, now := l.calls[i], [2]int64{p.granted.Load(), p.denied.Load()}
		l.calls[i] = now
		s.granted, s.denied = append(s.granted, now[0]-before[0]), append(s.denied, now[1]-before[1])
		s.events = append(s.events, p.happened()...)
		fmt.Fprintf(&text, "  | %5d %7d %6d", s.quotas[i], s.granted[i], s.denied[i])
		sum, granted = sum+s.quotas[i], granted+s.granted[i]
	}
	l.lines = append(l.lines, s)
	fmt.Fprintf(&text, "  | %3d of %d %7d  %s", sum, l.whole, granted, strings.Join(s.events, "; "))
	return strings.TrimRight(text.String(), " ")
}

// head is what stands above the lines.
func head(all []*place) string {
	first, second := "     ", "     "
	for _, p := range all {
		first += fmt.Sprintf("  | %-20s", fmt.Sprintf("%s asks %d/s", p.name, p.asks))
		second += "  | QUOTA GRANTED DENIED"
	}
	return strings.TrimRight(first+"  | all", " ") + "\n" + second + "  |    QUOTA GRANTED"
}

// check errs if the sum of quotas was ever above G.
func (l *lookout) check(out io.Writer) error {
	if l.most > l.whole {
		return fmt.Errorf("the buckets of all regions had %d together: more than G, %d", l.most, l.whole)
	}
	_, err := fmt.Fprintf(out,
		"\ncheck: ok: in %d looks the buckets of all regions never had more than G together, %d at most of %d\n",
		l.looks, l.most, l.whole)
	return err
}
