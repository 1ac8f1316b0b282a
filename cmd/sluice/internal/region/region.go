// Package region is `sluice region`: it divides limits among regions that have a table each.
package region

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
	"github.com/aws/smithy-go"
	"github.com/sluice-go/sluice/cmd/sluice/internal/connect"
	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/schemafile"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/filestore"
	"github.com/sluice-go/sluice/runtime/region/s3store"
	"github.com/sluice-go/sluice/runtime/store"
)

// Command is `sluice region`.
type Command struct {
	Sync   syncCommand   `cmd:"" help:"Publish this region's use of limits, and store its quotas."`
	Status statusCommand `cmd:"" help:"Show the regions and their quotas. Reads no table."`
}

// publishing are the flags that name the schema and the place to which regions publish.
type publishing struct {
	schemafile.Flag

	Snapshots string `required:"" env:"SLUICE_SNAPSHOTS" placeholder:"URL" help:"${snapshots}"`
}

// divided reads the schema and returns it with its regions.
func (p publishing) divided() (*schemafile.Schema, *store.Regions, error) {
	s, err := p.Read()
	if err != nil {
		return nil, nil, err
	}
	i := slices.IndexFunc(s.Specs, func(spec *store.Spec) bool { return spec.Regions != nil })
	if i < 0 {
		return nil, nil, fmt.Errorf("%s has no resource that regions divide: list regions in it, and mark a "+
			"resource `global: true`", s.File)
	}
	return s, s.Specs[i].Regions, nil
}

// snapshotsPlace is a directory, or a prefix in a bucket.
type snapshotsPlace struct{ dir, bucket, prefix string }

// place parses the URL. A wrong URL is a usage error.
func (p publishing) place() (snapshotsPlace, error) {
	if strings.HasPrefix(p.Snapshots, "file:") {
		u, err := url.Parse(p.Snapshots)
		if err != nil || u.Host != "" || u.Path == "" || u.RawQuery != "" || u.Fragment != "" {
			return snapshotsPlace{}, program.Usagef("--snapshots %s is not a directory: pass three slashes and its "+
				"path, such as file:///var/limits", p.Snapshots)
		}
		return snapshotsPlace{dir: u.Path}, nil
	}
	bucket, prefix, err := s3store.Parse(p.Snapshots)
	if err != nil {
		return snapshotsPlace{}, program.Usagef("--snapshots %q is no place: pass s3://bucket/prefix or "+
			"file:///directory",
			p.Snapshots)
	}
	return snapshotsPlace{bucket: bucket, prefix: prefix}, nil
}

// open returns the store of snapshots. An empty AWS region is that of the environment.
func (p snapshotsPlace) open(ctx context.Context, awsRegion string) (region.Snapshots, error) {
	if p.dir != "" {
		return filestore.New(p.dir)
	}
	client, err := connect.S3(ctx, awsRegion)
	if err != nil {
		return nil, err
	}
	return s3store.New(client, p.bucket, p.prefix)
}

// missing reports whether err says that the place itself is not there.
func (p snapshotsPlace) missing(err error) bool {
	if err == nil {
		return false
	}
	if p.dir != "" {
		_, there := os.Stat(p.dir)
		return errors.Is(there, fs.ErrNotExist)
	}
	answer, ok := errors.AsType[smithy.APIError](err)
	return ok && answer.ErrorCode() == "NoSuchBucket"
}

// FlagHelp returns the help texts that are too long for a tag.
func (Command) FlagHelp() kong.Vars {
	return kong.Vars{
		"snapshots": "The place to which all regions publish: s3://bucket/prefix, or file:///directory to try it " +
			"on one machine.",
		"region_as": "Name of this region in limits.yaml. The default is the AWS region, if limits.yaml lists it.",
		"evict": "After this silence of a region the others divide its quota: 5 windows or more. The default " +
			"is 10 windows.",
		"drift": "Write a quota if demand asks for one that differs by more than this, 1 to 100 percent. The " +
			"default is that of limits.yaml.",
		"horizon": "Write a quota if what is left does not last for so many windows, 1 to 100. The default is " +
			"that of limits.yaml.",
		"costs": "Show requests and dollars of 30 days by kind, as the regions were at their last snapshots.",
	}
}

// NoRedisReason implements an interface of package connect.
func (Command) NoRedisReason() string { return "regions divide limits of DynamoDB tables" }
