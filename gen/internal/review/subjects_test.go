package review

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	regionsync "github.com/sluice-go/sluice/examples/regionsync/limits"
	"github.com/sluice-go/sluice/gen/internal/model"
	"github.com/sluice-go/sluice/gen/internal/schema"
	chains "github.com/sluice-go/sluice/gen/testdata/golden/chains/out"
	many "github.com/sluice-go/sluice/gen/testdata/golden/many/out"
	plans "github.com/sluice-go/sluice/gen/testdata/golden/plans/out"
	templates "github.com/sluice-go/sluice/gen/testdata/golden/templates/out"
	"github.com/sluice-go/sluice/generated"
	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/limittest"
	"github.com/sluice-go/sluice/runtime/memdynamo"
	"github.com/sluice-go/sluice/runtime/store"
)

// modelOf returns the model of a schema, and of it a resource and a kind that it charges.
func modelOf(t testing.TB, path, resource, kind string) (*model.Resource, *model.Charged) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, problems := schema.Read(path, text)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	for _, r := range model.Of(s, filepath.Base(path)).Resources {
		for _, c := range r.Charged {
			if r.Name == resource && c.Kind.Name == kind {
				return r, c
			}
		}
	}
	t.Fatalf("%s has no %s for a %s", path, resource, kind)
	return nil, nil
}

// uuid is an id as long as the document assumes them.
const uuid = "0b2f6a54-9c1d-4e0e-8a3b-5d7f1c2e4a68"

// calls is what a process does for one entity, on one generated resource.
type calls struct {
	acquire  func(n int64) (lease, error)
	top      func(n int64) (lease, error) // for the last of its chain alone
	byID     func(n int64) (lease, error) // by its id alone
	know     func() error                 // stores its parents, and theirs
	override func() error                 // gives the entity another number
}

// lease is what is left to do after an acquire.
type lease struct {
	settle  func(n int64) error
	release func()
}

// callsFor is the calls on a resource for who, whose chain ends with top. other is an override.
func callsFor[E store.Entity, C, L any](
	t *testing.T, r *runtime.Resource[E, C], config *runtime.Config[E, C, L], known *runtime.Entities, who, byID,
	top E, cost func(int64) C, other L,
) calls {
	t.Helper()
	acquire := func(e E) func(n int64) (lease, error) {
		return func(n int64) (lease, error) {
			l, err := r.Acquire(t.Context(), e, cost(n))
			return lease{
				settle:  func(n int64) error { return l.Settle(t.Context(), cost(n)) },
				release: func() { l.Release(context.WithoutCancel(t.Context())) },
			}, err
		}
	}
	return calls{acquire: acquire(who), top: acquire(top), byID: acquire(byID), know: func() error {
		return family(t, known, who)
	}, override: func() error {
		_, err := config.Entity(who).Set(t.Context(), other, "")
		return err
	}}
}

// chain is an entity by its links.
type chain []store.Link

// Chain implements store.Entity.
func (c chain) Chain(dst []store.Link) []store.Link { return append(dst, c...) }

// family stores the parents of who, and theirs.
func family(t *testing.T, known *runtime.Entities, who store.Entity) error {
	t.Helper()
	links := chain(who.Chain(nil))
	for len(links) > 1 && links[1].ID != "" {
		if err := known.Put(t.Context(), links); err != nil {
			return err
		}
		links = links[1:]
	}
	return nil
}

// subject is a generated resource, a kind that it charges, and how a process is made that calls for one of
// that kind.
type subject struct {
	schema, resource, kind string
	most                   int64         // what a bucket of the kind holds
	full                   time.Duration // how long it takes to be full
	process                func(*testing.T, runtime.Store, ...runtime.Option) calls
}

// typicalVoice is a name as long as the document assumes them.
const typicalVoice = "a-voice-of-24-characters"

// addVoice stores the name that subjects call.
func addVoice(t *testing.T, engine *memdynamo.Engine) {
	t.Helper()
	l, err := templates.New(limittest.StoreOn(t, engine))
	if err != nil {
		t.Fatal(err)
	}
	limittest.Names(t, engine, l, templates.Voice, store.Entry{Name: typicalVoice})
}

// subjects are resources of every cascade, with chains of one, two and three buckets, one that regions share
// out, and last one whose items pass 1 KB.
func subjects() []subject {
	const demo = "../../../limits.yaml"
	const nested = "../../testdata/golden/chains/limits.yaml"
	const wide = "../../testdata/golden/many/limits.yaml"
	const planned = "../../testdata/golden/plans/limits.yaml"
	const named = "../../testdata/golden/templates/limits.yaml"
	const shared = "../../../examples/regionsync/limits.yaml"
	opened := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	project := generated.Project{ID: uuid}
	gpt4 := func(who, byID generated.GPT4Entity) func(*testing.T, runtime.Store, ...runtime.Option) calls {
		return func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			t.Helper()
			l, err := generated.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.GPT4, l.Config.GPT4, l.Entities(), who, byID, generated.GPT4Entity(project),
				func(n int64) generated.GPT4Cost { return generated.GPT4Cost{RPM: n} },
				generated.GPT4Limits{RPM: &runtime.Rate{Capacity: 2000, Every: time.Minute}})
		}
	}
	org := chains.Org{ID: uuid}
	team := chains.Project{ID: uuid, Team: chains.Team{ID: uuid, Org: org}}
	chat := func(who, byID chains.ChatEntity) func(*testing.T, runtime.Store, ...runtime.Option) calls {
		return func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			t.Helper()
			l, err := chains.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Chat, l.Config.Chat, l.Entities(), who, byID, chains.ChatEntity(org),
				func(n int64) chains.ChatCost { return chains.ChatCost{RPM: n} },
				chains.ChatLimits{RPM: &runtime.Rate{Capacity: 200, Every: time.Minute}})
		}
	}
	voice := func(who, byID templates.VoiceEntity) func(*testing.T, runtime.Store, ...runtime.Option) calls {
		return func(t *testing.T, store runtime.Store, opts ...runtime.Option) calls {
			t.Helper()
			l, err := templates.New(store, opts...)
			opened(t, err)
			voice, err := l.Voice.Named(t.Context(), typicalVoice)
			opened(t, err)
			return callsFor(t, voice.Resource, l.Config.Voice.Named(typicalVoice), l.Entities(), who, byID,
				templates.VoiceEntity(templates.Org{ID: uuid}),
				func(n int64) templates.VoiceCost { return templates.VoiceCost{RPM: n} },
				templates.VoiceLimits{RPM: &runtime.Rate{Capacity: 2000, Every: time.Minute}})
		}
	}
	return []subject{
		{demo, "gpt-4", "user", 100, time.Minute, gpt4(generated.User{ID: uuid, Project: project},
			generated.UserByID(uuid))},
		{demo, "gpt-4", "project", 1000, time.Minute, gpt4(project, generated.ProjectByID(uuid))},
		{demo, "embeddings", "project", 20, time.Second, func(t *testing.T, store runtime.Store,
			opts ...runtime.Option) calls {
			t.Helper()
			l, err := generated.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Embeddings, l.Config.Embeddings, l.Entities(), generated.EmbeddingsEntity(project),
				generated.EmbeddingsEntity(generated.ProjectByID(uuid)), generated.EmbeddingsEntity(project),
				func(n int64) generated.EmbeddingsCost { return generated.EmbeddingsCost{RPS: n} },
				generated.EmbeddingsLimits{RPS: &runtime.Rate{Capacity: 40, Every: time.Second}})
		}},
		{nested, "chat", "user", 100, time.Minute, chat(chains.User{ID: uuid, Project: team},
			chains.UserByID(uuid))},
		{nested, "chat", "project", 100, time.Minute, chat(team, chains.ProjectByID(uuid))},
		{nested, "jobs", "user", 100, 24 * time.Hour, func(t *testing.T, store runtime.Store,
			opts ...runtime.Option) calls {
			t.Helper()
			l, err := chains.New(store, opts...)
			opened(t, err)
			return callsFor(t, l.Jobs, l.Config.Jobs, l.Entities(),
				chains.JobsEntity(chains.User{ID: uuid, Project: team}),
				chains.JobsEntity(chains.UserByID(uuid)), chains.JobsEntity(org),
				func(n int64) chains.JobsCost { return chains.JobsCost{RPD: n} },
				chains.JobsLimits{RPD: &runtime.Rate{Capacity: 200, Every: 24 * time.Hour}})
		}},
		{shared, "gpt-4", "user", 50, time.Minute, func(t *testing.T, store runtime.Store,
			opts ...runtime.Option) calls {
			t.Helper()
			l, err := regionsync.New(store, opts...)
			opened(t, err)
			user := regionsync.GPT4Entity(regionsync.User{ID: uuid})
			return callsFor(t, l.GPT4, l.Config.GPT4, l.Entities(), user, user, user,
				func(n int64) regionsync.GPT4Cost { return regionsync.GPT4Cost{RPM: n} },
				regionsync.GPT4Limits{RPM: &runtime.Rate{Capacity: 2000, Every: time.Minute}})
		}},
		{planned, "api", "team", 100, 5 * time.Second, func(t *testing.T, store runtime.Store,
			opts ...runtime.Option) calls {
			t.Helper()
			l, err := plans.New(store, opts...)
			opened(t, err)
			team := plans.APIEntity(plans.Team{ID: uuid, Org: plans.Org{ID: uuid}})
			return callsFor(t, l.API, l.Config.API.Config, l.Entities(), team, plans.APIEntity(plans.TeamByID(uuid)),
				team, func(n int64) plans.APICost { return plans.APICost{RPS: n} },
				plans.APILimits{RPS: &runtime.Rate{Capacity: 200, Every: time.Second}})
		}},
		{named, "voice", "key", 60, time.Minute, voice(templates.Key{ID: uuid, Org: templates.Org{ID: uuid}},
			templates.KeyByID(uuid))},
		{named, "voice", "org", 60, time.Minute, voice(templates.Org{ID: uuid}, templates.Org{ID: uuid})},
		{wide, "api", "user", 24, time.Minute, func(t *testing.T, store runtime.Store,
			opts ...runtime.Option) calls {
			t.Helper()
			l, err := many.New(store, opts...)
			opened(t, err)
			user := many.APIEntity(many.User{ID: uuid})
			return callsFor(t, l.API, l.Config.API, l.Entities(), user, user, user,
				func(n int64) many.APICost { return many.APICost{Axx: n} },
				many.APILimits{Axx: &runtime.Rate{Capacity: 48, Every: time.Minute}})
		}},
	}
}
