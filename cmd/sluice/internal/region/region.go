package region

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/internal/tool/awsclient"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
	"github.com/sluice-go/sluice/runtime/region/s3store"
	"github.com/sluice-go/sluice/runtime/store"
)

// regionCommand is about limits that several regions share out, each with a table of its own.
type Command struct {
	Sync   syncCommand   `cmd:"" help:"Share limits out between regions: publish what this one holds, and store its shares."`
	Status statusCommand `cmd:"" help:"Show which regions take part, and what each holds. Changes nothing, and reads no table."`
}

// publishing is where regions publish, and the schema that names them.
type publishing struct {
	schemafile.Flag

	Snapshots string `required:"" env:"SLUICE_SNAPSHOTS" placeholder:"URL" help:"Where all regions publish: s3://bucket/prefix; or file:///directory, to try it on one machine."`
}

// shared reads the schema, and returns it with who shares its limits out.
func (p publishing) shared() (*schemafile.Schema, *store.Regions, error) {
	s, err := p.Read()
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(s.Specs, func(spec *store.Spec) bool { return spec.Regions != nil })
	if i < 0 {
		return nil, nil, fmt.Errorf("%s has no resource that regions share out: list them under regions, and mark a resource `global: true`", s.File)
	}
	return s, s.Specs[i].Regions, nil
}

// snapshotsPlace is what --snapshots names: a directory, or what lies below a prefix of a bucket.
type snapshotsPlace struct{ dir, bucket, prefix string }

// place reads the URL, which is all that can be wrong before anything is asked.
func (p publishing) place() (snapshotsPlace, error) {
	if strings.HasPrefix(p.Snapshots, "file:") {
		u, err := url.Parse(p.Snapshots)
		if err != nil || u.Host != "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			return snapshotsPlace{}, program.Usagef("--snapshots %s: want three slashes and a directory, as in file:///var/limits", p.Snapshots)
		}
		return snapshotsPlace{dir: u.Path}, nil
	}
	bucket, prefix, err := s3store.Parse(p.Snapshots)
	if err != nil {
		return snapshotsPlace{}, program.Usagef("--snapshots %q: want s3://bucket/prefix or file:///directory", p.Snapshots)
	}
	return snapshotsPlace{bucket: bucket, prefix: prefix}, nil
}

// open returns the place. An empty AWS region is the environment's.
func (p snapshotsPlace) open(ctx context.Context, awsRegion string) (region.Snapshots, error) {
	if p.dir != "" {
		return filestore.New(p.dir)
	}
	client, err := awsclient.S3(ctx, awsRegion)
	if err != nil {
		return nil, err
	}
	return s3store.New(client, p.bucket, p.prefix)
}
