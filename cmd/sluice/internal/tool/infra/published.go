package infra

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/sluice-go/sluice/runtime/region/s3store"
)

// Names of buckets and prefixes. S3 takes more in a prefix: not here, where a '*' would be anything.
var (
	bucketForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
	prefixForm = regexp.MustCompile(`^[A-Za-z0-9_./=-]*$`)
)

// published is where regions publish.
type published struct{ name, prefix string }

// Somewhere reports that there is such a place.
func (p published) Somewhere() bool { return p.name != "" }

// placeOf reads s3://bucket/prefix.
func placeOf(url string) (published, error) {
	if url == "" {
		return published{}, errors.New("role region-sync needs to know where regions publish: pass --snapshots " +
			"s3://bucket/prefix")
	}
	name, prefix, err := s3store.Parse(url)
	if err != nil || !bucketForm.MatchString(name) || !prefixForm.MatchString(prefix) {
		return published{}, fmt.Errorf("snapshots %q: want s3://bucket/prefix, of letters, digits and '-', '.', "+
			"'_', '=' and '/'", url)
	}
	return published{name, prefix}, nil
}

// objects returns the ARN of what regions publish, in a partition of AWS.
func (p published) objects(partition string) string {
	if p.prefix == "" {
		return p.bucket(partition) + "/*"
	}
	return p.bucket(partition) + "/" + p.prefix + "/*"
}

// bucket returns the ARN of the bucket.
func (p published) bucket(partition string) string { return "arn:" + partition + ":s3:::" + p.name }
