package dynamo

import (
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/dynamo/internal/override"
	"github.com/sluice-go/sluice/runtime/internal/item"
)

// lacksBeat reports whether the heartbeat is to be read with l's overrides: once a window, and where what is remembered of it does
// not say how things are now.
func (c *charge) lacksBeat(l *leg, now int64) bool {
	known := c.beat.Load()
	return known == nil || l.unsure || l.lacks&(newest|whole) != 0 || !known.Alive(now) || !c.fresh(l.spec, known.ReadAt, now)
}

// beatFor returns the heartbeat by which own, l's level, counts: of items if it was read, else as it is remembered. It is nil where own
// is a share that was stored after that: then both are to be read together.
func (c *charge) beatFor(l *leg, own *override.Override, items map[item.Key]codec.Item, now int64) (*override.Heartbeat, error) {
	if !l.withBeat {
		known := c.beat.Load()
		if l.unsure = own.IsQuota() && (own.Epoch > known.Epoch || own.Version >= known.Expires); l.unsure {
			return nil, nil
		}
		return known, nil
	}
	read, err := override.DecodeHeartbeat(items[item.Heartbeat], now)
	if err != nil {
		return nil, err
	}
	if known := c.beat.Load(); known == nil || known.ReadAt <= now {
		c.beat.Store(read)
	}
	return read, nil
}
