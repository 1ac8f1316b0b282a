package schemafile

import (
	"regexp"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
)

var (
	entityForm   = regexp.MustCompile(`^[a-z][a-z0-9_]*-[^#]+$`)
	ResourceForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._/-]{0,63}$`)
)

// checkArguments refuses what no bucket can be called: a peek at it would say "full" and mislead.
func CheckArguments(entity, resource string) error {
	if err := CheckEntity(entity); err != nil {
		return err
	}
	return CheckResource(resource)
}

func CheckEntity(entity string) error {
	if !entityForm.MatchString(entity) {
		return program.Usagef("entity %q: want kind and id as they are stored: user-123 is User{ID: \"123\"}", entity)
	}
	return nil
}

func CheckResource(resource string) error {
	if !ResourceForm.MatchString(resource) {
		return program.Usagef("resource %q: want its name in limits.yaml, as in gpt-4", resource)
	}
	return nil
}
