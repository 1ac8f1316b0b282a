package connect

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// billed is how a table is to be billed.
type Billing struct {
	ReadUnits  int64 `placeholder:"N" help:"Provision N read units for the table, and N for each index. The default is on demand."`
	WriteUnits int64 `placeholder:"N" help:"Provision N write units likewise; with --read-units."`
}

// of returns the definition of a table that is billed so. Units that cannot be are a usage error.
func (b Billing) Definition(table string) (operator.Definition, error) {
	d := operator.Definition{Table: table, ReadUnits: b.ReadUnits, WriteUnits: b.WriteUnits}
	if err := d.Check(); err != nil {
		return d, program.Usagef("--read-units, --write-units: %v", err)
	}
	return d, nil
}
