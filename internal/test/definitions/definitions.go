// Package definitions returns what a generated package gives to a store: one definition per resource.
package definitions

import (
	"fmt"

	"github.com/sluice-go/sluice/runtime"
	"github.com/sluice-go/sluice/runtime/dynamo/codec"
	"github.com/sluice-go/sluice/runtime/store"
)

// recorder is a store that notes the definitions it is opened with.
type recorder struct {
	store.Store
	store.Session
	defs []store.Definition
}

// Open implements store.Store.
func (r *recorder) Open(_ *store.Env, defs ...store.Definition) (store.Session, error) {
	r.defs = defs
	return r, nil
}

// opener is New of a generated package, such as limits.New.
type opener[L any] = func(runtime.Store, ...runtime.Option) (L, error)

// Of opens a generated package and returns its definitions in the order of the schema.
func Of[L any](open opener[L]) ([]store.Definition, error) {
	var r recorder
	if _, err := open(&r); err != nil {
		return nil, err
	}
	return r.defs, nil
}

// ForDynamo returns the definitions of a package that was generated for DynamoDB, by resource.
func ForDynamo[L any](open opener[L]) (map[string]codec.Resource, error) {
	defs, err := Of(open)
	if err != nil {
		return nil, err
	}
	all := make(map[string]codec.Resource, len(defs))
	for _, def := range defs {
		r, ok := def.(codec.Resource)
		if !ok {
			return nil, fmt.Errorf("resource %s was not generated for DynamoDB", def.Spec().Resource)
		}
		all[r.Spec().Resource] = r
	}
	return all, nil
}
