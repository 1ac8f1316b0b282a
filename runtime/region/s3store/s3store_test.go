package s3store_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/sluice-go/sluice/internal/test/errtext"
	"github.com/sluice-go/sluice/runtime/region"
	"github.com/sluice-go/sluice/runtime/region/s3store"
)

var (
	_ region.Snapshots = (*s3store.Store)(nil)
	_ s3store.API      = (*s3.Client)(nil)
)

const name = "eu-west-1/snapshot.json"

// serve returns a store of limits/ in bucket quotas, whose client is S3's own and is answered by handler.
func serve(t *testing.T, handler http.HandlerFunc) *s3store.Store {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client := s3.New(s3.Options{
		Region: "eu-west-1", BaseEndpoint: &server.URL, UsePathStyle: true,
		Credentials: credentials.NewStaticCredentialsProvider("id", "secret", ""),
		Retryer:     aws.NopRetryer{},
	})
	store, err := s3store.New(client, "quotas", "/limits/")
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// refuse answers as S3 does that refuses.
func refuse(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>%s</Message></Error>", code, message)
}

// TestErrors: what S3 refuses is said with the object, the operation, and what to do.
func TestErrors(t *testing.T) {
	const object = "s3://quotas/limits/" + name
	for _, test := range []struct {
		status   int
		code     string
		get, put string // how the error ends
	}{
		{
			403, "AccessDenied",
			"; allow s3:GetObject on this object for this process, here and in the bucket's policy, and " +
				"s3:ListBucket on the bucket, " +
				"without which S3 denies what is not there yet; `sluice infra iam --role region-sync` prints a policy",
			"; allow s3:PutObject on this object for this process, here and in the bucket's policy; " +
				"`sluice infra iam --role region-sync` prints a policy",
		},
		{404, "NoSuchBucket", "; create the bucket, in one of the regions, or name the one that all of them share",
			""},
		{403, "SignatureDoesNotMatch", "; check the credentials", ""},
		{403, "RequestTimeTooSkewed", "; set this machine's clock: regional quotas depend on it too", ""},
		{503, "SlowDown", "api error SlowDown: because", ""},
	} {
		store := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, test.status, test.code,
				"because")
		})
		if test.put == "" {
			test.put = test.get
		}
		_, err := store.Get(t.Context(), name)
		if err == nil || errors.Is(err, fs.ErrNotExist) ||
			!strings.HasPrefix(err.Error(), object+": GetObject: ") || !strings.HasSuffix(err.Error(), test.get) ||
			!strings.Contains(err.Error(), test.code+": because") {
			t.Errorf("get: %v\nwant %s", err, test.get)
		}
		err = store.Put(t.Context(), name, []byte("{}"))
		if err == nil || !strings.HasPrefix(err.Error(), object+": PutObject: ") ||
			!strings.HasSuffix(err.Error(), test.put) ||
			!strings.Contains(err.Error(), test.code+": because") {
			t.Errorf("put: %v\nwant %s", err, test.put)
		}
	}
	store := serve(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, "NoSuchKey", "because") })
	if _, err := store.Get(t.Context(), name); !errors.Is(err, fs.ErrNotExist) ||
		!strings.HasPrefix(err.Error(), object) {
		t.Errorf("what is not there: %v", err)
	}
	down := httptest.NewServer(http.NotFoundHandler())
	down.Close()
	nobody, err := s3store.New(s3.New(s3.Options{Region: "eu-west-1", BaseEndpoint: &down.URL,
		Retryer: aws.NopRetryer{}}), "quotas", "")
	if err != nil {
		t.Fatal(err)
	}
	_, err = nobody.Get(t.Context(), name)
	if failed, ok := errors.AsType[*s3store.Error](err); !ok || failed.Object != "s3://quotas/"+name ||
		failed.Op != "GetObject" || !strings.HasPrefix(err.Error(), failed.Object+": GetObject: ") {
		t.Errorf("where nobody answers: %v", err)
	}
}

// TestObject: an object goes out compressed and named as what it is, and comes back as it was. One that was
// put there by hand is returned as it is, whatever its headers say.
func TestObject(t *testing.T) {
	var stored []byte
	encoding := ""
	store := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.Method {
		case http.MethodPut:
			stored, _ = io.ReadAll(r.Body)
			encoding = r.Header.Get("Content-Encoding")
			if r.URL.Path != "/quotas/limits/"+name || r.Header.Get("Content-Type") != "application/json" {
				t.Errorf("put %s of type %s", r.URL.Path, r.Header.Get("Content-Type"))
			}
		case http.MethodGet:
			if encoding != "" {
				w.Header().Set("Content-Encoding", encoding)
			}
			_, _ = w.Write(stored)
		}
	})
	const text = `{"region": "eu-west-1"}`
	get := func(what string) {
		t.Helper()
		if got, err := store.Get(t.Context(), name); err != nil || string(got) != text {
			t.Errorf("%s: %q, %v", what, got, err)
		}
	}
	if err := store.Put(t.Context(), name, []byte(text)); err != nil {
		t.Fatal(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(stored))
	if err != nil || encoding != "gzip" {
		t.Fatalf("stored %q with encoding %q: %v", stored, encoding, err)
	}
	if plain, err := io.ReadAll(r); err != nil || string(plain) != text {
		t.Errorf("stored %q, %v", plain, err)
	}
	get("what was put")
	encoding = ""
	get("copied without its encoding")
	whole := stored
	stored = []byte(text)
	get("plain")
	stored = whole[:len(whole)-6]
	if got, err := store.Get(t.Context(), name); err == nil ||
		!strings.HasPrefix(err.Error(), "s3://quotas/limits/"+name+": GetObject: ") {
		t.Errorf("half: %q, %v", got, err)
	}
}

// TestTooLarge: what is too large is not written, and not read, compressed or not.
func TestTooLarge(t *testing.T) {
	const most = 1 << 20
	large := make([]byte, most+1)
	var stored []byte
	puts := 0
	store := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			puts++
			return
		}
		_, _ = w.Write(stored)
	})
	err := store.Put(t.Context(), name, make([]byte, s3store.MaxBytes+1))
	if _, ok := errors.AsType[*s3store.TooLargeError](err); !ok ||
		!strings.Contains(err.Error(), "larger than 64 MiB") || puts != 0 {
		t.Errorf("put without another bound: %v", err)
	}
	store.Bound(most)
	const want = "s3://quotas/limits/" + name +
		" is larger than 1 MiB; it is no snapshot, or one of too many entities: share fewer resources out"
	refused := func(what string, err error) {
		t.Helper()
		if _, ok := errors.AsType[*s3store.TooLargeError](err); !ok || err.Error() != want {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("put", store.Put(t.Context(), name, large))
	if puts != 0 {
		t.Error("it was put all the same")
	}
	if err := store.Put(t.Context(), name, large[1:]); err != nil || puts != 1 {
		t.Errorf("put of all that may be: %v", err)
	}
	stored = large
	_, err = store.Get(t.Context(), name)
	refused("plain", err)
	for _, size := range []int{len(large), len(large) - 1} {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write(large[:size])
		_ = w.Close()
		stored = packed.Bytes()
		got, err := store.Get(t.Context(), name)
		if size == len(large) {
			refused("compressed", err)
		} else if err != nil || len(got) != size {
			t.Errorf("compressed, all that may be: %d bytes, %v", len(got), err)
		}
	}
}

// TestRegion: a bucket in another region is found by what S3 says of it, once; one in the right region that
// refuses is not asked twice.
func TestRegion(t *testing.T) {
	var asked []string
	is := "us-west-2"
	denies := false
	store := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=id/")
		asked = append(asked, strings.Split(scope, "/")[1])
		w.Header().Set("X-Amz-Bucket-Region", is)
		switch {
		case asked[len(asked)-1] != is:
			refuse(w, 301, "PermanentRedirect", "elsewhere")
		case denies:
			refuse(w, 403, "AccessDenied", "because")
		default:
			_, _ = io.WriteString(w, "{}")
		}
	})
	for range 2 {
		if _, err := store.Get(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Put(t.Context(), name, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(asked, " "); got != "eu-west-1 us-west-2 us-west-2 us-west-2" {
		t.Errorf("asked %s", got)
	}
	asked, denies = nil, true
	if _, err := store.Get(t.Context(), name); err == nil || len(asked) != 1 {
		t.Errorf("denied %d times: %v", len(asked), err)
	}
}

func TestMistakes(t *testing.T) {
	for _, test := range []struct {
		api    s3store.API
		bucket string
		want   string
	}{
		{nil, "quotas", "setup: no client of S3 is passed | pass s3.NewFromConfig(cfg)"},
		{&s3.Client{}, "", "setup: no bucket is named for the regions' snapshots | name the one that all regions " +
			"share"},
	} {
		store, err := s3store.New(test.api, test.bucket, "")
		if errtext.Of(err) != test.want || store != nil {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	for text, want := range map[string][2]string{
		"s3://quotas":              {"quotas", ""},
		"s3://quotas/":             {"quotas", ""},
		"s3://quotas/limits/eu/":   {"quotas", "limits/eu"},
		"s3://my.bucket-1//limits": {"my.bucket-1", "limits"},
	} {
		if bucket, prefix, err := s3store.Parse(text); err != nil || bucket != want[0] || prefix != want[1] {
			t.Errorf("%s: %q, %q, %v", text, bucket, prefix, err)
		}
	}
	for _, text := range []string{"", "quotas/limits", "s3:///limits", "https://quotas", "s3://a:b@quotas",
		"s3://quotas?region=x", "s3://quotas#x", "s3://quotas:80/x", "s3://%"} {
		if _, _,
			err := s3store.Parse(text); errtext.Of(err) != fmt.Sprintf("setup: %q is not a place in "+
			"S3 | name one as in s3://bucket/prefix", text) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
