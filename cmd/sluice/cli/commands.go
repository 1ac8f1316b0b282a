package cli

import (
	"maps"
	"reflect"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/aggregate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/audit"
	"github.com/sluice-go/sluice/cmd/sluice/internal/breaking"
	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/catalog"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/dev"
	"github.com/sluice-go/sluice/cmd/sluice/internal/entity"
	"github.com/sluice-go/sluice/cmd/sluice/internal/generate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/grant"
	"github.com/sluice-go/sluice/cmd/sluice/internal/infra"
	"github.com/sluice-go/sluice/cmd/sluice/internal/initialize"
	"github.com/sluice-go/sluice/cmd/sluice/internal/load"
	"github.com/sluice-go/sluice/cmd/sluice/internal/metrics"
	"github.com/sluice-go/sluice/cmd/sluice/internal/migrate"
	"github.com/sluice-go/sluice/cmd/sluice/internal/override"
	"github.com/sluice-go/sluice/cmd/sluice/internal/peek"
	"github.com/sluice-go/sluice/cmd/sluice/internal/plan"
	"github.com/sluice-go/sluice/cmd/sluice/internal/region"
	"github.com/sluice-go/sluice/cmd/sluice/internal/reset"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schema"
	"github.com/sluice-go/sluice/cmd/sluice/internal/serve"
	"github.com/sluice-go/sluice/cmd/sluice/internal/table"
	"github.com/sluice-go/sluice/cmd/sluice/internal/top"
	"github.com/sluice-go/sluice/cmd/sluice/internal/usage"
	"github.com/sluice-go/sluice/cmd/sluice/internal/version"
	"github.com/sluice-go/sluice/cmd/sluice/internal/windows"
)

// commands is the grammar that kong parses: a field for each command. A new command needs a field here, a
// folder of its own, and its help in docs/command.md, which a test asks for.
type commands struct {
	Generate  generate.Command   `cmd:"" help:"Write the Go package that limits.yaml describes."`
	Breaking  breaking.Command   `cmd:"" help:"List the breaking changes of limits.yaml."`
	Schema    schema.Command     `cmd:"" help:"Print the reference of limits.yaml: its keys and its errors."`
	Init      initialize.Command `cmd:"" help:"Write a starter limits.yaml and a go:generate line for it."`
	Table     table.Command      `cmd:"" help:"Create or check the DynamoDB table."`
	Peek      peek.Command       `cmd:"" help:"Show what a bucket has left. Changes nothing."`
	Top       top.Command        `cmd:"" help:"List the most used buckets of a resource. Changes nothing."`
	Entity    entity.Command     `cmd:"" help:"Store and show the parents of entities."`
	Windows   windows.Command    `cmd:"" help:"List when windows of limits start. Changes nothing."`
	Override  override.Command   `cmd:"" help:"Change the limits of an entity or a kind without a deployment."`
	Plan      plan.Command       `cmd:"" help:"Put entities on the plans of limits.yaml."`
	Catalog   catalog.Command    `cmd:"" help:"Show and change the names of templates."`
	Audit     audit.Command      `cmd:"" help:"List who has changed a plan, an override or a catalog, and why."`
	Reset     reset.Command      `cmd:"" help:"Fill a bucket up."`
	Grant     grant.Command      `cmd:"" help:"Add credits to a bucket, or a refund."`
	Aggregate aggregate.Command  `cmd:"" help:"Add up consumption from the table's stream, for usage to show."`
	Usage     usage.Command      `cmd:"" help:"Show what an entity consumed. Changes nothing."`
	Region    region.Command     `cmd:"" help:"Divide limits among regions that have a table each."`
	Infra     infra.Command      `cmd:"" help:"Print templates of the table, and IAM policies."`
	Metrics   metrics.Command    `cmd:"" help:"Print the metrics, a dashboard for them, and alarms."`
	Migrate   migrate.Command    `cmd:"" help:"Convert per-limit items into buckets, beside live acquires."`
	Load      load.Command       `cmd:"" help:"Measure limits under load: latencies, denials, capacity units."`
	Dev       dev.Command        `cmd:"" help:"Serve a DynamoDB in memory, for development, until Ctrl-C."`
	Serve     serve.Command      `cmd:"" passthrough:"" help:"Serve limits by HTTP, to any language."`
	Version   version.Command    `cmd:"" help:"Print the version."`

	PrintVersion version.Flag `name:"version" help:"Print the version."`
}

// flagHelper is a command with help texts that are too long for the tags of its flags. A tag names one as
// help:"${name}".
type flagHelper interface{ FlagHelp() kong.Vars }

// setHelp puts the help texts that tags name into flags and arguments: shared ones and those of the commands.
// They are not kong's variables, since kong parses all its variables again for every flag, which takes longer
// than most commands. kong still refuses a name that has no text.
func (c *commands) setHelp(parser *kong.Kong) error {
	texts := c.flagHelp()
	return kong.Visit(parser.Model, func(node kong.Visitable, next kong.Next) error {
		if value, ok := node.(*kong.Value); ok { // of a flag, or an argument
			name, named := strings.CutPrefix(value.Help, "${")
			if text, known := texts[strings.TrimSuffix(name, "}")]; named && known {
				value.Help = text
			}
		}
		return next(nil)
	})
}

// flagHelp returns the help texts by name.
func (c *commands) flagHelp() kong.Vars {
	all := kong.Vars{}
	maps.Copy(all, connect.FlagHelp)
	maps.Copy(all, bucketstore.FlagHelp)
	for _, command := range reflect.ValueOf(c).Elem().Fields() {
		if helper, ok := reflect.TypeAssert[flagHelper](command.Addr()); ok {
			maps.Copy(all, helper.FlagHelp())
		}
	}
	return all
}
