package schemafile

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"

	"github.com/sluice-go/sluice/gen"
	"github.com/sluice-go/sluice/runtime/store"
)

// The forms of names, as far as they can be checked without a schema.
var (
	entityForm   = regexp.MustCompile(`^[a-z][a-z0-9_]*-[^#]+$`)
	ResourceForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}$`)
)

// CheckArguments returns a usage error if a bucket cannot have these names. A look-up would find nothing,
// which reads as a full bucket.
func CheckArguments(entity, resource string) error {
	if err := CheckEntity(entity); err != nil {
		return err
	}
	return CheckResource(resource)
}

// CheckEntity returns a usage error if entity is not of the form kind-id.
func CheckEntity(entity string) error {
	if !entityForm.MatchString(entity) {
		return program.Usagef("entity %q is not of the form kind-id: write it as it is stored, such as user-123",
			entity)
	}
	return nil
}

// CheckResource returns a usage error if resource cannot be the name of a resource, or of a name of a
// template, such as model/gpt-5.
func CheckResource(resource string) error {
	if ResourceForm.MatchString(resource) {
		return nil
	}
	template, name, ofTemplate := strings.Cut(resource, "/")
	if !ofTemplate || !ResourceForm.MatchString(template) {
		return program.Usagef("resource %q cannot be a name in limits.yaml: write it as there, such as gpt-4",
			resource)
	}
	if reason := store.CheckName(name); reason != "" {
		return program.Usagef("name %q of %s %s", name, template, reason)
	}
	return nil
}

// Without says which name of what is audited the schema does not have, as the end of a sentence: it may be
// mistyped, or from before. It returns "" if there is none, and for a nil Schema.
func (s *Schema) Without(of store.Audited) string {
	var err error
	switch {
	case s == nil:
	case of.Entity != "":
		_, err = s.Entity(of.Entity)
	case slices.Contains(s.kindNames(), of.Kind):
	case of.Kind != "":
		err = program.Usagef("%s has no kind %q: %s", s.File, of.Kind, gen.Cure(of.Kind, s.kindNames()))
	default:
		_, err = s.Resource(cmp.Or(of.Plans, of.Catalog))
	}
	if err == nil {
		return ""
	}
	return ": " + program.Text(err)
}
