package infra_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The bucket of these tests, and what lies below its prefix.
const (
	bucketARN  = "arn:aws:s3:::quotas"
	objectsARN = bucketARN + "/limits/"
)

// publish serves commands an S3 of one bucket, whose requests s records as AWS would see them. It denies a
// missing object unless the caller may list the bucket.
func (s *service) publish(t *testing.T) {
	t.Helper()
	objects := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		defer s.mu.Unlock()
		key, ok := strings.CutPrefix(r.URL.Path, "/quotas/")
		if !ok {
			t.Errorf("%s %s is about no object", r.Method, r.URL.Path)
		}
		note := func(action, resource string) {
			s.seen = append(s.seen, request{"S3 " + r.Method, []ask{{action, resource, nil}}})
		}
		switch object, there := objects[key]; {
		case r.Method == http.MethodPut:
			note("s3:PutObject", bucketARN+"/"+key)
			text, err := io.ReadAll(r.Body)
			if err != nil {
				t.Error(err)
			}
			objects[key] = text
		case r.Method == http.MethodGet && there:
			note("s3:GetObject", bucketARN+"/"+key)
			_, _ = w.Write(object)
		case r.Method == http.MethodGet:
			note("s3:GetObject", bucketARN+"/"+key)
			note("s3:ListBucket", bucketARN)
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
		default:
			t.Errorf("%s %s is not expected", r.Method, r.URL.Path)
		}
	}))
	t.Cleanup(server.Close)
	t.Setenv("AWS_ENDPOINT_URL_S3", server.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
}
