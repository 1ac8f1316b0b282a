package api

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/serve/internal/leases"
	"github.com/sluice-go/sluice/serve/internal/limits"
	"github.com/sluice-go/sluice/serve/internal/strictjson"
)

// body is what a request's body may have. Each path takes some of it.
type body struct {
	resource string
	name     string // of a template; "" if there is none
	entity   []limits.ID
	cost     []limits.Number
	usage    []limits.Number // nil if there is none
	wait     time.Duration
}

// Members of bodies.
const (
	memberResource = "resource"
	memberName     = "name"
	memberEntity   = "entity"
	memberCost     = "cost"
	memberUsage    = "usage"
	memberWait     = "wait"
)

// decode reads a body with these members. An empty one is {}.
func decode(text []byte, members ...string) (b body, err error) {
	r := strictjson.NewReader(text)
	if len(text) == 0 {
		return b, nil
	}
	if err = b.read(r, "the body", members); err == nil {
		err = r.End()
	}
	return b, invalidBody(err)
}

// decodeAll reads an array of bodies with these members.
func decodeAll(text []byte, members ...string) (all []body, err error) {
	r := strictjson.NewReader(text)
	err = r.Array("the body", func(i int) error {
		if i == mostClaims {
			return r.Fail("there are more than %d claims: send fewer", mostClaims)
		}
		var b body
		err := b.read(r, fmt.Sprint("claim ", i+1), members)
		all = append(all, b)
		return err
	})
	if err == nil {
		err = r.End()
	}
	return all, invalidBody(err)
}

// invalidBody returns the answer to a mistake in a body.
func invalidBody(err error) error {
	if err == nil {
		return nil
	}
	return answer(http.StatusBadRequest, "The body is not valid at "+sentence(err))
}

// read reads an object with these members; what names it, for errors.
func (b *body) read(r *strictjson.Reader, what string, members []string) error {
	return r.Object(what, func(name string) (err error) {
		known := false
		for _, m := range members {
			known = known || m == name
		}
		if !known {
			return r.Unknown(name, gen.Cure(name, members))
		}
		switch name {
		case memberResource:
			b.resource, err = r.Text(name)
		case memberName:
			b.name, err = r.Text(name)
		case memberEntity:
			b.entity, err = ids(r)
		case memberCost:
			b.cost, err = numbers(r, name)
		case memberUsage:
			b.usage, err = numbers(r, name)
		case memberWait:
			b.wait, err = wait(r)
		}
		return err
	})
}

// ids reads an entity.
func ids(r *strictjson.Reader) (all []limits.ID, err error) {
	return all, r.Object(memberEntity, func(kind string) error {
		id, err := r.TextOf("the id of ", kind)
		all = append(all, limits.ID{Kind: kind, ID: id})
		return err
	})
}

// numbers reads a cost or a usage.
func numbers(r *strictjson.Reader, what string) ([]limits.Number, error) {
	all := []limits.Number{}
	err := r.Object(what, func(name string) error {
		l, err := r.Scalar(name)
		all = append(all, limits.Number{Name: name, Text: l.Text, Quoted: l.Quoted})
		return err
	})
	return all, err
}

// wait reads a duration.
func wait(r *strictjson.Reader) (time.Duration, error) {
	at := *r
	text, err := r.Text(memberWait)
	if err != nil {
		return 0, err
	}
	d, err := time.ParseDuration(text)
	switch {
	case err != nil:
		return 0, at.Fail("wait %s is no duration: write a number and a unit, such as 5s or 500ms",
			strictjson.Quote(text))
	case d < 0 || d > mostWait:
		return 0, at.Fail("wait %s is out of range: write 0s to 10m", strictjson.Quote(text))
	}
	return d, nil
}

// claim returns what b asks for of a resource. It fails as Resource.Named does, or with a *problem.
func (b *body) claim(ctx context.Context, on *limits.Resource) (c leases.Claim, err error) {
	if c.On, err = on.Named(ctx, b.name); err != nil {
		return c, err
	}
	on = c.On
	if c.Entity, err = on.Entity(b.entity); err != nil {
		return c, err
	}
	c.Cost, err = b.costFor(on, c.Entity.Kind())
	return c, err
}

// costFor returns the cost of b for a kind of entity.
func (b *body) costFor(on *limits.Resource, kind int) ([]int64, error) {
	switch {
	case b.usage != nil && b.cost != nil:
		return nil, answer(http.StatusBadRequest, "The request has a cost and a usage: send one "+
			"of them.")
	case b.usage != nil:
		return on.CostOf(kind, b.usage)
	}
	return on.Cost(b.cost)
}
