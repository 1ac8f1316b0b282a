package main

import (
	"slices"
	"strings"
	"time"

	"github.com/sluice-go/sluice/examples/gateway/limits"
)

// tenant is who calls, and how.
type tenant struct {
	name, manner string
	user         limits.User // calls gpt-4, unless embeds
	embeds       bool        // calls embeddings, charged to user's project
	waits        bool        // rather waits than being denied
	hangsUp      bool        // before the reply is at its end
	every        time.Duration
	together     int // calls at once
	words        int // of an average prompt
}

// tenants returns the cast.
func tenants() []tenant {
	search := limits.Project{ID: "search", Org: limits.Org{ID: "acme"}}
	lab := limits.Project{ID: "lab", Org: limits.Org{ID: "acme"}}
	return []tenant{
		{name: "alice", manner: "steady", user: limits.User{ID: "alice", Project: search},
			every: 700 * time.Millisecond, together: 1, words: 60},
		{name: "bob", manner: "in bursts", user: limits.User{ID: "bob", Project: search}, every: 4 * time.Second,
			together: 30, words: 60},
		{name: "carol", manner: "waits", user: limits.User{ID: "carol", Project: lab}, waits: true,
			every: 250 * time.Millisecond, together: 1, words: 100},
		{name: "mallory", manner: "abusive", user: limits.User{ID: "mallory", Project: lab},
			every: 80 * time.Millisecond, together: 1, words: 400},
		{name: "dora", manner: "hangs up", user: limits.User{ID: "dora", Project: search}, hangsUp: true,
			every: 500 * time.Millisecond, together: 1, words: 60},
		{name: "search", manner: "steady", user: limits.User{Project: search}, embeds: true,
			every: 80 * time.Millisecond, together: 1},
		{name: "lab", manner: "greedy", user: limits.User{Project: lab}, embeds: true, every: 25 * time.Millisecond,
			together: 1},
	}
}

// apiKey is what the tenant's requests carry.
func (t *tenant) apiKey() string { return "sk-" + t.name }

// users returns who has which API key.
func users(cast []tenant) map[string]limits.User {
	keys := map[string]limits.User{}
	for i := range cast {
		keys[cast[i].apiKey()] = cast[i].user
	}
	return keys
}

// place is a bucket: an entity, as stored, on a resource.
type place struct{ entity, resource string }

// limits returns the bucket's limits in schema order.
func (p place) limits() []string {
	if p.resource == limits.Embeddings {
		return []string{limits.EmbeddingsRPS.String()}
	}
	return []string{limits.GPT4RPM.String(), limits.GPT4TPM.String()}
}

func userOn(u limits.User) place       { return place{"user-" + u.ID, limits.GPT4} }
func projectOn(p limits.Project) place { return place{"project-" + p.ID, limits.GPT4} }

// textsOn is the bucket that embeddings for whomever of the project charge.
func textsOn(p limits.Project) place { return place{"project-" + p.ID, limits.Embeddings} }

// charged returns the buckets that the tenant's calls charge, its own first.
func (t *tenant) charged() []place {
	if t.embeds {
		return []place{textsOn(t.user.Project)}
	}
	return []place{userOn(t.user), projectOn(t.user.Project)}
}

// line is one bucket of the report: a tenant's own, or that of a project which its users' calls charge too.
type line struct {
	place
	manner  string            // of who calls; for a project, its users
	calls   limits.GPT4Entity // gpt-4 for whom; nil for embeddings
	project limits.Project
	users   []place // whose calls alone charge it; none for a tenant's own
}

// callers are the buckets of those whose calls charge l: its own, or its users'.
func (l *line) callers() []place {
	if len(l.users) == 0 {
		return []place{l.place}
	}
	return l.users
}

// lines returns the buckets that the tenants charge: users', their projects', and those of embeddings.
func lines(tenants []tenant) []line {
	var users, projects, others []line
	for i := range tenants {
		t := &tenants[i]
		project := t.user.Project
		own := line{place: t.charged()[0], manner: t.manner, project: project}
		if t.embeds {
			others = append(others, own)
			continue
		}
		own.calls = t.user
		users = append(users, own)
		at := slices.IndexFunc(projects, func(l line) bool { return l.project == project })
		if at < 0 {
			at = len(projects)
			projects = append(projects, line{place: projectOn(project), calls: project, project: project})
		}
		p := &projects[at]
		p.users = append(p.users, own.place)
		p.manner = strings.TrimPrefix(p.manner+" + "+t.name, " + ")
	}
	return slices.Concat(users, projects, others)
}
