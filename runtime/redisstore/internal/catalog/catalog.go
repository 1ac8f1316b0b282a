// Package catalog keeps the names of templates: a hash for each template.
package catalog

import (
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/sluice-go/sluice/runtime/bucket"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/audit"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/database"
	"github.com/sluice-go/sluice/runtime/redisstore/internal/text"
	"github.com/sluice-go/sluice/runtime/store"
)

// setScript replaces an entry.
//
//go:embed set.lua
var setScript string

// Catalog implements store.Catalog. The client's retries apply: a repeated write is recognised by its id.
type Catalog struct {
	DB    *database.DB
	Wrote func(spec *store.Spec, e *store.Entry) // called after each Set that succeeds; nil if nobody asks
}

// stored is an entry as its hash has it. Numbers are by place (Stored.At) and limit.
type stored struct {
	Alias   string                       `json:"alias,omitempty"`
	Buckets string                       `json:"buckets,omitempty"`
	Numbers map[string]map[string]string `json:"numbers,omitempty"`
	Prices  map[string]int64             `json:"prices,omitempty"`
}

// Get implements store.Catalog.
func (c *Catalog) Get(
	ctx context.Context, spec *store.Spec, name string,
) (e store.Entry, found bool, err error) {
	key := c.DB.Keys.Catalog(spec.Resource)
	value, err := c.DB.Client.HGet(ctx, key, name).Result()
	if errors.Is(err, redis.Nil) {
		return store.Entry{}, false, nil
	}
	if err != nil {
		return store.Entry{}, false, c.DB.OperationError(ctx, database.OnKey(key, err))
	}
	return c.decode(spec, name, value)
}

// Set implements store.Catalog. It leaves what spec does not have, of another binary.
func (c *Catalog) Set(ctx context.Context, spec *store.Spec, e store.Entry) (store.Revision, error) {
	if err := e.Check(spec); err != nil {
		return "", err
	}
	s := stored{Alias: e.Alias, Buckets: e.Buckets, Numbers: map[string]map[string]string{},
		Prices: map[string]int64{}}
	for _, numbers := range e.Numbers {
		limits := map[string]string{}
		for i, l := range numbers.Limits {
			if l == nil {
				continue
			}
			if wrong := text.CheckLimit(spec, i, *l); wrong != "" {
				return "", &store.InvalidError{
					Resource: spec.Resource, Field: "limit " + spec.Limits[i] + " of " + store.Quote(e.Name),
					Reason: "is not possible: " + wrong,
				}
			}
			limits[spec.Limits[i]] = text.Limit(*l)
		}
		s.Numbers[numbers.At] = limits
	}
	for i, price := range e.Prices {
		if price >= 0 {
			s.Prices[spec.Usages[i]] = price
		}
	}
	if err := c.keepOthers(ctx, spec, &e, &s); err != nil {
		return "", err
	}
	entry, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("entry %s of the catalog of %s: %w", store.Quote(e.Name), spec.Resource, err)
	}
	rev, err := c.write(ctx, spec, &e, string(entry))
	if err == nil && c.Wrote != nil {
		e.Revision = rev
		if e.Version, err = strconv.ParseInt(string(rev), 10, 64); err == nil {
			c.Wrote(spec, &e)
		}
	}
	return rev, err
}

// keepOthers adds to, which is e, what is stored of limits, kinds, plans and usages that spec does not have.
// If the entry changes after this read, it has another revision than e. An alias has none of these.
func (c *Catalog) keepOthers(ctx context.Context, spec *store.Spec, e *store.Entry, to *stored) error {
	if e.Revision == "" || e.Alias != "" {
		return nil
	}
	key := c.DB.Keys.Catalog(spec.Resource)
	value, err := c.DB.Client.HGet(ctx, key, e.Name).Result()
	if errors.Is(err, redis.Nil) {
		return nil
	}
	if err != nil {
		return c.DB.OperationError(ctx, database.OnKey(key, err))
	}
	var there stored
	if _, entry := split(value); entry != "" {
		if err := json.Unmarshal([]byte(entry), &there); err != nil {
			return nil //nolint:nilerr // Set replaces what is malformed
		}
	}
	for at, limits := range there.Numbers {
		for limit, text := range limits {
			if slices.Contains(spec.EntryAt(), at) && slices.Contains(spec.Limits, limit) {
				continue
			}
			if to.Numbers[at] == nil {
				to.Numbers[at] = map[string]string{}
			}
			to.Numbers[at][limit] = text
		}
	}
	for usage, price := range there.Prices {
		if !slices.Contains(spec.Usages, usage) {
			to.Prices[usage] = price
		}
	}
	return nil
}

// split returns the version and the entry of a value, which is empty if it was removed.
func split(value string) (version, entry string) {
	version, rest, _ := strings.Cut(value, " ")
	_, entry, _ = strings.Cut(rest, " ")
	return version, entry
}

// Delete implements store.Catalog.
func (c *Catalog) Delete(ctx context.Context, spec *store.Spec, name string, rev store.Revision) error {
	_, err := c.write(ctx, spec, &store.Entry{Name: name, Revision: rev}, "")
	return err
}

// write puts entry, the text of e, in place of what has the revision of e. An empty entry removes the name.
func (c *Catalog) write(
	ctx context.Context, spec *store.Spec, e *store.Entry, entry string,
) (store.Revision, error) {
	key := c.DB.Keys.Catalog(spec.Resource)
	after, err := Fields(entry) // as what was before: with what spec does not have
	if err != nil {
		return "", err
	}
	record, err := audit.New(ctx, c.DB, key, store.Change{At: e.Name, Resource: spec.Resource, After: after})
	if err != nil {
		return "", err
	}
	version, err := redis.NewScript(setScript).Run(ctx, c.DB.Client, []string{key, record.Key}, e.Name,
		string(e.Revision), rand.Text(), entry, record.Text).Text()
	switch {
	case err != nil:
		return "", c.DB.OperationError(ctx, database.OnKey(key, err))
	case version == "":
		return "", &store.ConflictError{
			At: fmt.Sprintf("name %s of the catalog of %s", store.Quote(e.Name), spec.Resource),
		}
	}
	return store.Revision(version), nil
}

// List implements store.Catalog, in one read.
func (c *Catalog) List(ctx context.Context, spec *store.Spec) iter.Seq2[store.Entry, error] {
	return func(yield func(store.Entry, error) bool) {
		key := c.DB.Keys.Catalog(spec.Resource)
		all, err := c.DB.Client.HGetAll(ctx, key).Result()
		if err != nil {
			yield(store.Entry{}, c.DB.OperationError(ctx, database.OnKey(key, err)))
			return
		}
		for _, name := range slices.Sorted(maps.Keys(all)) {
			e, found, err := c.decode(spec, name, all[name])
			if (found || err != nil) && !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// decode decodes the entry of a name. found is false if it was removed.
func (c *Catalog) decode(spec *store.Spec, name, value string) (e store.Entry, found bool, err error) {
	version, entry := split(value)
	if e.Version, err = strconv.ParseInt(version, 10, 64); err == nil && entry != "" {
		e.Name, e.Revision, found = name, store.Revision(version), true
		err = decode(spec, entry, &e)
	}
	if err != nil {
		return store.Entry{}, false, &store.SetupError{
			What: fmt.Sprintf("the entry %s of the catalog of %s is malformed", store.Quote(name), spec.Resource),
			Do: "delete the field of the hash " + store.Quote(c.DB.Keys.Catalog(spec.Resource)) +
				", and run `sluice catalog apply`", Err: err,
		}
	}
	return e, found, nil
}

// Fields returns the text of an entry, which may be empty, as records of changes have it.
func Fields(entry string) (map[string]string, error) {
	var s stored
	if entry == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(entry), &s); err != nil {
		return nil, fmt.Errorf("an entry: %w", err)
	}
	fields := map[string]string{}
	if s.Alias != "" {
		fields["alias"] = s.Alias
	}
	if s.Buckets != "" {
		fields["buckets"] = s.Buckets
	}
	for at, limits := range s.Numbers {
		for name, limit := range limits {
			fields[at+"."+name] = limit
		}
	}
	for usage, price := range s.Prices {
		fields["price "+usage] = strconv.FormatInt(price, 10)
	}
	return fields, nil
}

// decode decodes text into e. It skips what spec does not have, which another binary wrote.
func decode(spec *store.Spec, entry string, e *store.Entry) error {
	var s stored
	if err := json.Unmarshal([]byte(entry), &s); err != nil {
		return err
	}
	e.Alias, e.Buckets = s.Alias, s.Buckets
	for _, at := range spec.EntryAt() {
		numbers := store.Stored{At: at, Limits: make([]*bucket.Limit, len(spec.Limits))}
		for i, limit := range spec.Limits {
			stored, ok := s.Numbers[at][limit]
			if !ok {
				continue
			}
			var err error
			if numbers.Limits[i], err = text.ParseLimit(spec, i, stored); err != nil {
				return fmt.Errorf("at %s: %w", at, err)
			}
		}
		if numbers.Overrides() {
			e.Numbers = append(e.Numbers, numbers)
		}
	}
	for i, usage := range spec.Usages {
		if price, ok := s.Prices[usage]; ok {
			if e.Prices == nil {
				e.Prices = slices.Repeat([]int64{-1}, len(spec.Usages))
			}
			e.Prices[i] = price
		}
	}
	return nil
}
