// Package openapi describes the HTTP API of a schema, for clients and their generators.
package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/sluice-go/sluice/runtime/store"
	"github.com/sluice-go/sluice/serve/internal/limits"
)

// object is a JSON object. Its members are written in the order of their names.
type object = map[string]any

// Document returns the description, OpenAPI 3.1 in JSON. Each resource's entity and cost have a schema of
// their own.
func Document(all []*limits.Resource, version string) ([]byte, error) {
	d := document{paths: object{}, schemas: object{}}
	d.shared()
	var claims, costs, usages []any
	for _, r := range all {
		d.resource(r)
		claims = append(claims, claimOf(r))
		costs = append(costs, ref(r, "Cost"))
		if len(r.Usages()) > 0 {
			usages = append(usages, ref(r, "Usage"))
		}
	}
	d.leases(costs, usages)
	d.paths["/v1/acquire"] = post("acquire_all", "Acquire all claims, or none.",
		object{"type": "array", "minItems": 1, "maxItems": 50, "items": object{"anyOf": claims}},
		object{"type": "array", "items": object{"$ref": "#/components/schemas/Granted"}},
		"400", "401", "402", "404", "413", "422", "429", "503")
	idempotent(d.paths["/v1/acquire"])
	return json.MarshalIndent(object{
		"openapi": "3.1.0",
		"info": object{
			"title": "sluice serve", "version": version,
			"description": "Acquire from limits, and settle what a call took. Generated from limits.yaml.",
		},
		"security": []any{object{}, object{"token": []any{}}},
		"paths":    d.paths,
		"components": object{
			"schemas": d.schemas, "responses": d.responses(),
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
	}, "", "  ")
}

// document is a description in the making.
type document struct{ paths, schemas object }

// name returns the name of a resource's schema.
func name(r *limits.Resource, of string) string { return r.Name() + "." + of }

// ref refers to a resource's schema.
func ref(r *limits.Resource, of string) object {
	return object{"$ref": "#/components/schemas/" + name(r, of)}
}

// closed returns a schema of an object without other members.
func closed(properties object, required ...string) object {
	schema := object{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// named is closed, with the name of a template's catalog if r is a template.
func named(r *limits.Resource, properties object, required ...string) object {
	if r.IsTemplate() {
		properties["name"] = object{"type": "string", "minLength": 1, "maxLength": 128,
			"description": "A name of the catalog, such as that of a model."}
		required = append(required, "name")
	}
	return closed(properties, required...)
}

// shared adds the schemas that do not depend on limits.yaml.
func (d *document) shared() {
	d.schemas["Money"] = object{"type": "string", "pattern": `^(0|[1-9][0-9]*)(\.[0-9]{1,9})?$`,
		"description": "An amount, as a decimal: a number of JSON is a float to many programs."}
	d.schemas["Granted"] = object{"type": "object", "required": []any{"lease"}, "properties": object{
		"lease":     object{"type": "string"},
		"remaining": object{"type": "object"},
		"degraded":  object{"type": "boolean", "description": "The failure policy admitted, in an outage."},
		"shadowed":  object{"type": "boolean", "description": "A limit would have refused."},
	}}
	whole := object{"type": "integer", "minimum": 0}
	d.schemas["Problem"] = object{
		"type": "object", "description": "An answer of RFC 9457.",
		"required": []any{"type", "title", "status", "detail"},
		"properties": object{
			"type": object{"type": "string"}, "title": object{"type": "string"}, "detail": object{"type": "string"},
			"status": object{"type": "integer"}, "resource": object{"type": "string"},
			"retry_after": object{"type": "integer", "minimum": 0, "description": "In seconds, as Retry-After."},
			"ended": object{"type": "string", "description": "How a lease has ended.",
				"enum": []any{"settled", "kept", "released", "expired", "lost"}},
			"violated-policies": object{"type": "array", "items": object{"type": "string"}},
			"limits": object{"type": "array", "description": "That refuse.", "items": object{
				"type": "object", "required": []any{"limit"}, "properties": object{
					"resource": object{"type": "string"}, "limit": object{"type": "string"},
					"requested": whole, "available": whole, "burst": whole, "retry_after": whole,
					"resets": object{"type": "string", "format": "date-time"},
					"money": object{"type": "object", "properties": object{
						"currency":  object{"type": "string"},
						"requested": object{"$ref": "#/components/schemas/Money"},
						"available": object{"$ref": "#/components/schemas/Money"},
						"capacity":  object{"$ref": "#/components/schemas/Money"},
					}},
				},
			}},
		},
	}
}

// resource adds the schemas and paths of a resource.
func (d *document) resource(r *limits.Resource) {
	d.schemas[name(r, "Entity")] = entityOf(r)
	cost, left := object{}, object{}
	for i, limit := range r.Spec.Limits {
		number := numberOf(r, i)
		left[limit] = number
		own := object{"description": "Without it, or with 0, a call takes the limit's per_call."}
		maps.Copy(own, number)
		cost[limit] = own
	}
	d.schemas[name(r, "Cost")] = closed(cost)
	d.schemas[name(r, "Remaining")] = closed(left)
	members := object{"entity": ref(r, "Entity"), "cost": ref(r, "Cost"), "wait": object{"type": "string",
		"description": "Wait for tokens for as long: 5s, 500ms.", "pattern": `^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$`}}
	if names := r.Usages(); len(names) > 0 {
		usage := object{}
		for _, u := range names {
			usage[u] = object{"type": "integer", "minimum": 0}
		}
		d.schemas[name(r, "Usage")] = closed(usage)
		members["usage"] = ref(r, "Usage")
	}
	d.schemas[name(r, "Granted")] = object{"type": "object", "required": []any{"lease"}, "properties": object{
		"lease": object{"type": "string"}, "remaining": ref(r, "Remaining"),
		"degraded": object{"type": "boolean"}, "shadowed": object{"type": "boolean"},
	}}
	failed := []string{"400", "401", "413", "503"}
	if r.IsTemplate() {
		failed = append(failed, "404")
	}
	acquire := post("acquire_"+id(r), "Acquire from "+r.Name()+".", named(r, members, "entity"),
		ref(r, "Granted"), append([]string{"402", "408", "422", "429"}, failed...)...)
	idempotent(acquire)
	d.paths["/v1/"+r.Name()+"/acquire"] = acquire
	d.paths["/v1/"+r.Name()+"/peek"] = post("peek_"+id(r), "Read what is left of "+r.Name()+". Changes nothing.",
		named(r, object{"entity": ref(r, "Entity")}, "entity"), snapshotOf(r), failed...)
}

// id returns a resource's name as a part of an operation's id.
func id(r *limits.Resource) string {
	return strings.Map(func(c rune) rune {
		if c == '-' || c == '.' || c == '/' {
			return '_'
		}
		return c
	}, r.Name())
}

// numberOf returns the schema of a number of the i-th limit.
func numberOf(r *limits.Resource, i int) object {
	if unit := r.Spec.Unit(i); unit != "" {
		return object{"$ref": "#/components/schemas/Money"}
	}
	return object{"type": "integer", "minimum": 0}
}

// entityOf returns the schema of the entities that may call: the entity's kind, and the kinds above it.
func entityOf(r *limits.Resource) object {
	var all []any
	for _, kind := range r.Callers() {
		properties, needs := object{}, object{}
		below := ""
		for at := kind; at != store.NoParent; at = r.Spec.Kinds[at].Parent {
			own := r.Spec.Kinds[at].Name
			properties[own] = object{"type": "string", "minLength": 1, "maxLength": 256, "pattern": "^[^#]*$"}
			if below != "" {
				needs[own] = []any{below}
			}
			below = own
		}
		schema := closed(properties, r.Spec.Kinds[kind].Name)
		if len(needs) > 0 {
			schema["dependentRequired"] = needs
		}
		all = append(all, schema)
	}
	if len(all) == 1 {
		one, _ := all[0].(object)
		return one
	}
	return object{"anyOf": all}
}

// claimOf returns the schema of a claim on a resource.
func claimOf(r *limits.Resource) object {
	members := object{"resource": object{"const": r.Name()}, "entity": ref(r, "Entity"), "cost": ref(r, "Cost")}
	if len(r.Usages()) > 0 {
		members["usage"] = ref(r, "Usage")
	}
	return named(r, members, "resource", "entity")
}

// snapshotOf returns the schema of what peek sees.
func snapshotOf(r *limits.Resource) object {
	var kinds []any
	for _, kind := range r.Callers() {
		kinds = append(kinds, r.Spec.Kinds[kind].Name)
	}
	left := ref(r, "Remaining")
	return closed(object{"available": left, "buckets": object{"type": "array", "items": closed(object{
		"kind": object{"enum": kinds}, "available": left, "capacity": left, "burst": left,
		"full_in_ms": object{"type": "integer"}, "exists": object{"type": "boolean"},
		"all_names": object{"type": "boolean", "description": "All names of the catalog have it together."},
	}, "kind", "available", "capacity", "burst", "full_in_ms", "exists")}}, "available", "buckets")
}

// leases adds the paths of leases.
func (d *document) leases(costs, usages []any) {
	members := object{"cost": object{"anyOf": costs}}
	if len(usages) > 0 {
		members["usage"] = object{"anyOf": usages}
	}
	left := closed(object{"remaining": object{"type": "object"}}, "remaining")
	failed := []string{"401", "404", "410", "421"}
	for verb, does := range map[string]string{
		"settle": "State what a call has taken, which ends its lease. The difference is charged or given back.",
		"more":   "Acquire more for a lease.",
	} {
		own := slices.Concat(failed, []string{"400", "413", "503"})
		if verb == "more" {
			own = append(own, "402", "429")
		}
		d.paths["/v1/leases/{lease}/"+verb] = ofLease(post(verb, does, closed(members), left, own...))
	}
	for verb, does := range map[string]string{
		"keep":    "End a lease as it is.",
		"release": "End a lease, and give back all that it took.",
		"alive":   "Keep a lease open for another minute, though its connection is closed.",
	} {
		d.paths["/v1/leases/{lease}/"+verb] = ofLease(post(verb, does, nil, nil, failed...))
	}
}

// ofLease adds the parameter of a lease to a path.
func ofLease(path object) object {
	path["parameters"] = []any{object{"name": "lease", "in": "path", "required": true,
		"schema": object{"type": "string"}}}
	return path
}

// idempotent adds the header Idempotency-Key to a path.
func idempotent(path any) {
	operation, _ := path.(object)["post"].(object)
	operation["parameters"] = []any{object{"name": "Idempotency-Key", "in": "header",
		"description": "An acquire with the same key gets the same lease, for ten minutes.",
		"schema":      object{"type": "string", "minLength": 1, "maxLength": 255}}}
}

// post returns a path with an operation. body and answer may be nil.
func post(operation, summary string, body, answer object, failures ...string) object {
	responses := object{}
	for _, f := range failures {
		responses[f] = object{"$ref": "#/components/responses/" + f}
	}
	if answer == nil {
		responses["204"] = object{"description": "It is done."}
	} else {
		responses["200"] = object{"description": "It is done.",
			"content": object{"application/json": object{"schema": answer}}}
	}
	own := object{"operationId": operation, "summary": summary, "responses": responses}
	if body != nil {
		own["requestBody"] = object{"required": true,
			"content": object{"application/json": object{"schema": body}}}
	}
	return object{"post": own}
}

// responses returns the answers to calls that are not served.
func (d *document) responses() object {
	schema := object{"$ref": "#/components/schemas/Problem"}
	problem := object{"application/problem+json": object{"schema": schema}}
	all := object{}
	for status, when := range map[int]string{
		400: "The request is not valid: repeating does not help.",
		401: "The request has no valid token.",
		402: "A limit of money has denied the call.",
		404: "There is no such resource, no such name of it, or no such lease.",
		408: "The body did not arrive in time.",
		410: "The lease has ended before.",
		413: "The body is too large.",
		421: "Another replica holds the lease.",
		422: "The Idempotency-Key was used for another request.",
		429: "A limit has denied the call: retry after Retry-After.",
		503: "The store or the server cannot answer now.",
	} {
		all[strconv.Itoa(status)] = object{
			"description": fmt.Sprintf("%s: %s", http.StatusText(status), when), "content": problem,
		}
	}
	return all
}
