package conformance

import (
	"math/rand/v2"

	"github.com/sluice-go/sluice/runtime/store"
)

// nameRandom: whatever is edited, by whom, buckets have the model's numbers, and no version falls.
func nameRandom(w *nameWorld) {
	random := rand.New(rand.NewPCG(27, 4)) //nolint:gosec // a history that comes again
	names := []string{"gpt-5", "gpt-6", "gpt-7"}
	keys := []string{"1", "2"}
	orgs := []string{"7", "8"}
	known := map[string]bool{}
	n := func(most int64) int64 { return random.Int64N(most) }
	some := func(from []string) string { return from[random.IntN(len(from))] }
	numbers := func() amounts { return amounts{n(3) * (20 + n(50)), n(2) * (500 + n(1000)), 0} }
	for _, name := range names { // a refused call may make a bucket, and the model does not know which
		w.enter(store.Entry{Name: name})
		known[name] = true
		for who := range keys {
			w.call(w.here, name, keyOf(keys[who], orgs[who]), amounts{1, 1, 1})
		}
	}
	for range w.changes {
		p := []*gateway{w.here, w.elsewhere}[n(2)]
		name, who := some(names), n(2)
		key, org := keys[who], orgs[who]
		switch kind := n(10); {
		case kind < 2 || !known[name]:
			w.enter(entryOf(name, map[string]amounts{"key": numbers(), "pro.key": numbers()}))
			known[name] = true
		case kind == 2 && n(3) == 0:
			w.remove(name)
			known[name] = false
			continue
		case kind == 3:
			w.change(p, name, some([]string{"key", "pro.key", "key-" + key}), numbers())
		case kind == 4:
			w.change(p, "", some([]string{"key", "pro.key", "key-" + key}), numbers())
		case kind == 5:
			w.change(p, "", some([]string{"org", "pro.org", "org-" + org}), amounts{0, 0, n(2) * (1 + n(40))})
		case kind == 6:
			w.put(p, org, some([]string{"", "pro", "enterprise"}))
		}
		if w.plans[org] == "enterprise" { // whose rpm is unlimited
			w.put(p, org, "")
		}
		w.later()
		for _, p := range []*gateway{w.here, w.elsewhere} {
			w.call(p, name, keyOf(key, org), amounts{1 + n(4), n(30), n(2)})
		}
		if n(20) == 0 { // the model does not know the refill before a change, so time does not fill them
			for who := range keys {
				w.fill(p, name, keyOf(keys[who], orgs[who]))
				w.fillAll(p, orgs[who])
			}
		}
	}
	for i, p := range []*gateway{w.here, w.elsewhere} {
		if p.fell != "" {
			w.Errorf("process %d: the version of %s has fallen", i, p.fell)
		}
	}
}
