package connect

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// Billing are the flags that choose a table's billing: on demand, or provisioned.
type Billing struct {
	ReadUnits  int64 `placeholder:"N" help:"${read_units}"`
	WriteUnits int64 `placeholder:"N" help:"Provision N write units for each likewise; with --read-units."`
}

// Definition returns the definition of a table with this billing. Impossible units are a usage error.
func (b Billing) Definition(table string) (operator.Definition, error) {
	d := operator.Definition{Table: table, ReadUnits: b.ReadUnits, WriteUnits: b.WriteUnits}
	if err := d.Check(); err != nil {
		return d, program.Usagef("--read-units, --write-units: %v", err)
	}
	return d, nil
}
