package connect

import (
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/runtime/dynamo"
	"github.com/sluice-go/sluice/runtime/dynamo/operator"
)

// Namespaced is the flag of a command that works in one namespace of a table.
type Namespaced struct {
	Namespace *string `env:"SLUICE_NAMESPACE" placeholder:"NAME" help:"${namespace}"`
}

// Name returns the namespace's name, or an empty string without the flag.
func (n Namespaced) Name() string {
	if n.Namespace == nil {
		return ""
	}
	return *n.Namespace
}

// Check returns a usage error for a wrong name. An empty one is wrong too: an unset shell variable must not
// lead a command to another namespace.
func (n Namespaced) Check() error {
	if n.Namespace == nil {
		return nil
	}
	if *n.Namespace == "" {
		return program.Usagef("--namespace is empty: pass the name that the service gives to dynamo.Namespace, " +
			"or leave the flag out (--namespace, SLUICE_NAMESPACE)")
	}
	if err := operator.CheckNamespace(*n.Namespace); err != nil {
		return program.Usagef("%v (--namespace, SLUICE_NAMESPACE)", err)
	}
	return nil
}

// In returns client for the namespace. It fails as Check does.
func (n Namespaced) In(client dynamo.API) (dynamo.API, error) {
	if err := n.Check(); err != nil || n.Namespace == nil {
		return client, err
	}
	return operator.InNamespace(client, *n.Namespace)
}
