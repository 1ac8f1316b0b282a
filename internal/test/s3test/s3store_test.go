package s3test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

const (
	bucket = "quotas"
	name   = "eu-west-1/snapshot.json"
)

// serve starts an S3 that has the bucket, and returns its address.
func serve(t *testing.T) string {
	t.Helper()
	address, backend := serveEmpty(t)
	if err := backend.CreateBucket(bucket); err != nil {
		t.Fatal(err)
	}
	return address
}

// serveEmpty starts an S3 without a bucket, and returns its address and what it stores.
func serveEmpty(t *testing.T) (address string, backend *s3mem.Backend) {
	t.Helper()
	backend = s3mem.New()
	server := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(server.Close)
	return server.URL, backend
}

// dial returns a client of the S3 at an address, in a region.
func dial(address, region string) *s3.Client {
	return s3.New(s3.Options{
		Region: region, BaseEndpoint: &address, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
	})
}

func open(t *testing.T, client *s3.Client, bucket, prefix string) region.Snapshots {
	t.Helper()
	store, err := s3store.New(client, bucket, prefix)
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// TestStore: what a region puts, another reads, as it was put last; below another prefix there is nothing.
func TestStore(t *testing.T) {
	address := serve(t)
	here, there := open(t, dial(address, "eu-west-1"), bucket, "limits"),
		open(t, dial(address, "us-east-1"), bucket, "limits/")
	if _, err := there.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("before the first put: %v", err)
	}
	for _, text := range []string{`{"sequence": 1}`, strings.Repeat(`{"sequence": 2}`, 100_000), "",
		`{"sequence": 3}`} {
		if err := here.Put(t.Context(), name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if got, err := there.Get(t.Context(), name); err != nil || string(got) != text {
			t.Errorf("of %d bytes %d came back: %v", len(text), len(got), err)
		}
	}
	for what, store := range map[string]region.Snapshots{
		"another prefix": open(t, dial(address, "eu-west-1"), bucket, "other"),
		"no prefix":      open(t, dial(address, "eu-west-1"), bucket, ""),
	} {
		if _, err := store.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("below %s: %v", what, err)
		}
	}
}

// TestObject: what lies there says what it is, and what somebody puts there by hand, as it is, is read too.
func TestObject(t *testing.T) {
	client := dial(serve(t), "eu-west-1")
	store := open(t, client, bucket, "limits")
	text := []byte(strings.Repeat(`{"limit": "rpm"}`, 1000))
	if err := store.Put(t.Context(), name, text); err != nil {
		t.Fatal(err)
	}
	at := &s3.HeadObjectInput{Bucket: aws.String(bucket), Key: aws.String("limits/" + name)}
	head, err := client.HeadObject(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	if aws.ToString(head.ContentType) != "application/json" || aws.ToString(head.ContentEncoding) != "gzip" ||
		*head.ContentLength > int64(len(text)/10) {
		t.Errorf("%s, %s, %d bytes", aws.ToString(head.ContentType), aws.ToString(head.ContentEncoding),
			*head.ContentLength)
	}
	if _, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: at.Bucket, Key: at.Key,
		Body: bytes.NewReader(text)}); err != nil {
		t.Fatal(err)
	}
	if got, err := store.Get(t.Context(), name); err != nil || !bytes.Equal(got, text) {
		t.Errorf("of %d bytes as they are %d came back: %v", len(text), len(got), err)
	}
}

// TestErrors: no bucket is not the same as no object, and a context that has ended is not S3's fault.
func TestErrors(t *testing.T) {
	store := open(t, dial(serve(t), "eu-west-1"), "quota", "limits")
	const cure = "; create the bucket, in one of the regions, or name the one that all of them share"
	if _, err := store.Get(t.Context(), name); err == nil || errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), "s3://quota/limits/"+name+": GetObject: ") ||
		!strings.HasSuffix(err.Error(), cure) {
		t.Errorf("get: %v", err)
	}
	if err := store.Put(t.Context(), name, nil); err == nil || !strings.HasSuffix(err.Error(), cure) {
		t.Errorf("put: %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Get(ended, name); !errors.Is(err, context.Canceled) {
		t.Errorf("get after the end: %v", err)
	}
	if err := store.Put(ended, name, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("put after the end: %v", err)
	}
}
