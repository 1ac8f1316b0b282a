package declared

import "github.com/sluice-go/sluice/gen/internal/schema"

// Parts of the names that generated code declares for a template.
const (
	NamesSuffix  = "Names"  // ends the type of the Limiter's field
	PricesSuffix = "Prices" // ends the type of a name's prices
	NamedSuffix  = "Named"  // ends the function that makes a name's resource; also before ConfigSuffix

	// AllNamesInfix joins the names of a resource and of a kind in that of the kind's buckets of all names.
	AllNamesInfix = "All"
)

// templateNames are the names that generated code declares for r, a template, besides those of any resource
// and the indexes of buckets. private is its unexported name.
func templateNames(r *schema.Resource, private string) []string {
	names := []string{r.GoName + NamesSuffix, private + NamedSuffix}
	if r.Priced() {
		names = append(names, r.GoName+PricesSuffix)
	}
	if r.OnPlans {
		names = append(names, r.GoName+NamedSuffix+ConfigSuffix)
	}
	return names
}

// templateSuffixes are the ends of the names of a template's exported types, besides those of any resource.
func templateSuffixes() []string {
	return []string{NamesSuffix, PricesSuffix, ConfigSuffix, NamedSuffix + ConfigSuffix}
}

// allNames returns the indexes of buckets of all names that generated code declares for r.
func allNames(s *schema.Schema, r *schema.Resource, private string) (names []string) {
	for _, c := range r.Charged {
		for _, b := range r.Buckets(c) {
			if b.AllNames && b.Kind >= 0 && s.Kinds[b.Kind].GoName != "" {
				names = append(names, private+AllNamesInfix+s.Kinds[b.Kind].GoName)
			}
		}
	}
	return names
}
