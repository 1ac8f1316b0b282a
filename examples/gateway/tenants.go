package main

import (
	"time"

	limits "github.com/sluice-go/sluice/generated"
)

// tenant is who calls, and how.
type tenant struct {
	name, manner string
	user         limits.User // calls gpt-4, unless embeds
	embeds       bool        // calls embeddings, charged to user's project
	waits        bool        // rather waits than being denied
	every        time.Duration
	together     int // calls at once
	words        int // of an average prompt
}

// tenants returns the cast.
func tenants() []tenant {
	search := limits.Project{ID: "search", Org: limits.Org{ID: "acme"}}
	lab := limits.Project{ID: "lab", Org: limits.Org{ID: "acme"}}
	return []tenant{
		{name: "alice", manner: "steady", user: limits.User{ID: "alice", Project: search}, every: 700 * time.Millisecond, together: 1, words: 60},
		{name: "bob", manner: "in bursts", user: limits.User{ID: "bob", Project: search}, every: 4 * time.Second, together: 30, words: 60},
		{name: "carol", manner: "waits", user: limits.User{ID: "carol", Project: lab}, waits: true, every: 250 * time.Millisecond, together: 1, words: 100},
		{name: "mallory", manner: "abusive", user: limits.User{ID: "mallory", Project: lab}, every: 80 * time.Millisecond, together: 1, words: 400},
		{name: "search", manner: "steady", user: limits.User{Project: search}, embeds: true, every: 80 * time.Millisecond, together: 1},
		{name: "lab", manner: "greedy", user: limits.User{Project: lab}, embeds: true, every: 25 * time.Millisecond, together: 1},
	}
}

// bucket returns the tenant's bucket as stored, and its limits in schema order.
func (t *tenant) bucket() (entity, resource string, names []string) {
	if t.embeds {
		return "project-" + t.user.Project.ID, limits.Embeddings, []string{limits.EmbeddingsRPS}
	}
	return "user-" + t.user.ID, limits.GPT4, []string{limits.GPT4RPM, limits.GPT4TPM}
}
