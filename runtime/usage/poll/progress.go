package poll

import (
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodbstreams/types"
)

// Progress is the progress of a Poller since its Run or Drain began.
type Progress struct {
	Streams int   // of the table: the one that is on, and those that can still be read
	Shards  int   // that these have
	Reading int   // of the shards, those under way
	Done    int   // of the shards, those read to their end: nothing will be added to them
	Records int64 // read, of any kind: the stream tells of the windows and checkpoints too
	// of the records, those that said that something was consumed, and are in their windows
	Counted     int64
	Checkpoints int64 // written
	Waits       int64 // pauses after a call that failed: throttled, or without an answer
	Lost        int   // shards of which records may have been trimmed before they were read
	// the age of the oldest record of those that shards have read last; 0 where all are at their end
	Behind time.Duration
}

// progress collects the shards' progress and reports it.
type progress struct {
	report func(Progress)

	mu     sync.Mutex
	now    Progress
	behind map[string]time.Time // by shard: when its last record was written, unless it is at its end
}

// report changes the progress and reports it.
func (r *run) report(change func(*Progress)) {
	r.note(func(g *progress) { change(&g.now) })
}

// arrived records that a shard has read records, before they are counted: that may take long. first is the
// oldest of them.
func (r *run) arrived(shard string, records int, first *types.StreamRecord) {
	r.note(func(g *progress) {
		g.now.Records += int64(records)
		if first != nil && first.ApproximateCreationDateTime != nil {
			g.behind[shard] = *first.ApproximateCreationDateTime
		}
	})
}

// behind records that a shard has counted records up to at.
func (r *run) behind(shard string, at time.Time, counted int) {
	r.note(func(g *progress) {
		g.now.Counted += int64(counted)
		g.behind[shard] = at
	})
}

// caughtUp records that a shard has nothing more at present.
func (r *run) caughtUp(shard string) {
	r.note(func(g *progress) { delete(g.behind, shard) })
}

func (r *run) note(change func(*progress)) {
	g := &r.progress
	g.mu.Lock()
	defer g.mu.Unlock()
	change(g)
	g.now.Behind = 0
	now := r.Clock.Now()
	for _, at := range g.behind {
		g.now.Behind = max(g.now.Behind, now.Sub(at))
	}
	g.report(g.now)
}
