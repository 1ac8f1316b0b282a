// Package s3store stores the regions' snapshots in one S3 bucket that all of them share.
//
//	bucket, prefix, err := s3store.Parse(place) // s3://bucket/prefix, the same in all regions
//	if err != nil {
//		return nil, err
//	}
//	snapshots, err := s3store.New(client, bucket, prefix) // no I/O
//	if err != nil {
//		return nil, err
//	}
//	return snapshots, snapshots.Put(ctx, "eu-central-1/snapshot.json", []byte("{}"))
//
// A region.Sync whose Config has the [Store] as its Snapshots calls Put and Get by itself. The bucket may be
// in any region: if the client asks in another one, S3 names the right one in its first reply.
package s3store

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/runtime/store"
)

// API is the part of *s3.Client that Store calls.
type API interface {
	GetObject(ctx context.Context, in *s3.GetObjectInput, opts ...func(*s3.Options)) (*s3.GetObjectOutput, error)
	PutObject(ctx context.Context, in *s3.PutObjectInput, opts ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// Store is the objects below a prefix of a bucket. It implements region.Snapshots. Its methods are safe for
// concurrent use.
type Store struct {
	api            API
	bucket, prefix string
	most           int                    // bytes of an object
	region         atomic.Pointer[string] // the bucket's, once S3 has replied that it is not the client's
}

// New returns the store below a prefix of a bucket, which may be empty; slashes around it do not count. It
// does no I/O.
func New(api API, bucket, prefix string) (*Store, error) {
	switch {
	case api == nil:
		return nil, &store.SetupError{What: "no client of S3 is passed", Do: "pass s3.NewFromConfig(cfg)"}
	case bucket == "":
		return nil, &store.SetupError{What: "no bucket is named for the regions' snapshots",
			Do: "name the one that all regions share"}
	}
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	return &Store{api: api, bucket: bucket, prefix: prefix, most: MaxBytes}, nil
}

// Parse returns the bucket and the prefix of a URL, s3://bucket/prefix.
func Parse(text string) (bucket, prefix string, err error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "s3" || u.Host == "" || u.User != nil || u.Port() != "" || u.RawQuery != "" ||
		u.Fragment != "" {
		return "", "", &store.SetupError{What: fmt.Sprintf("%q is not a place in S3", text),
			Do: "name one as in s3://bucket/prefix"}
	}
	return u.Host, strings.Trim(u.Path, "/"), nil
}

// Get returns the object last put under a name. It also reads objects that are not compressed. The error is
// one of:
//   - fs.ErrNotExist, if there is none;
//   - a *TooLargeError above MaxBytes;
//   - an *Error otherwise.
func (s *Store) Get(ctx context.Context, name string) ([]byte, error) {
	var out *s3.GetObjectOutput
	key := s.prefix + name
	err := s.inRegion(func(opts func(*s3.Options)) (err error) {
		out, err = s.api.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: &key}, opts)
		return err
	})
	if err != nil {
		return nil, s.explain("GetObject", key, err)
	}
	object, err := unpack(out.Body, s.most)
	if err != nil {
		return nil, s.explain("GetObject", key, err)
	}
	return object, nil
}

// Put replaces the object under a name, compressed. Above MaxBytes it fails with a *TooLargeError, since Get
// would not read it, and else with an *Error.
func (s *Store) Put(ctx context.Context, name string, object []byte) error {
	key := s.prefix + name
	packed, err := pack(object, s.most)
	if err != nil {
		return s.explain("PutObject", key, err)
	}
	return s.explain("PutObject", key, s.inRegion(func(opts func(*s3.Options)) error {
		_, err := s.api.PutObject(ctx, &s3.PutObjectInput{
			Bucket: &s.bucket, Key: &key, Body: bytes.NewReader(packed),
			ContentType: aws.String("application/json"), ContentEncoding: aws.String("gzip"),
		}, opts)
		return err
	}))
}

// inRegion calls S3 in the bucket's region. The bucket is in at most one of the regions: in the others S3
// rejects the first call and names the bucket's region.
func (s *Store) inRegion(call func(func(*s3.Options)) error) error {
	asked := ""
	opts := func(o *s3.Options) {
		if known := s.region.Load(); known != nil {
			o.Region = *known
		}
		asked = o.Region
	}
	err := call(opts)
	if is := bucketRegion(err); is != "" && asked != "" && is != asked {
		s.region.Store(&is)
		return call(opts)
	}
	return err
}
