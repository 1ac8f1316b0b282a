package dynamolocal_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/sluice-go/sluice/internal/test/dynamolocal"
	"github.com/sluice-go/sluice/internal/test/dynamotest"
)

func TestStartAnswerStop(t *testing.T) {
	dynamotest.RequireLocal(t)
	t.Setenv("SLUICE_DYNAMODB_ENDPOINT", "")
	server, err := dynamolocal.Start(t.Context(), dynamolocal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Error(err)
		}
	})
	out, err := server.Client().ListTables(t.Context(), &dynamodb.ListTablesInput{})
	if err != nil {
		t.Fatal(err)
	}
	if len(out.TableNames) != 0 {
		t.Errorf("a new engine has tables: %q", out.TableNames)
	}
	if err := server.Stop(); err != nil {
		t.Fatal(err)
	}
	if conn, err := net.Dial("tcp", strings.TrimPrefix(server.Endpoint(), "http://")); err == nil {
		_ = conn.Close()
		t.Errorf("%s still answers after Stop", server.Endpoint())
	}
}

func TestMissing(t *testing.T) {
	t.Setenv("SLUICE_DYNAMODB_ENDPOINT", "")
	empty := t.TempDir()
	jars := jarFolder(t)
	for _, test := range []struct {
		name   string
		java   string // what the only java on PATH prints before it gives up; "": there is none
		folder string // SLUICE_DYNAMODB_LOCAL
		want   string
	}{
		{"java", "", jars, "no Java 17 or newer on PATH: apt-get install openjdk-17-jre-headless"},
		{"java behind a stub", "Unable to locate a Java Runtime.", jars,
			"no Java 17 or newer on PATH: apt-get install openjdk-17-jre-headless"},
		{"newer java", "java.lang.UnsupportedClassVersionError: …", jars,
			"java is older than Java 17: apt-get install openjdk-17-jre-headless"},
		{"jars", "unused", empty, "DynamoDB Local is not in " + empty + ": run `make dynamodb-local`"},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeJava(t, test.java)
			t.Setenv("SLUICE_DYNAMODB_LOCAL", test.folder)
			_, err := dynamolocal.Start(t.Context(), dynamolocal.Options{})
			if err == nil || !strings.HasSuffix(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q\nwant %q", err, test.want)
			}
		})
	}
}

func TestStartFails(t *testing.T) {
	jars := jarFolder(t)
	for _, test := range []struct {
		name, prints, want string
	}{
		{"broken engine", "Exception in thread main", "it exited; it printed:\nException in thread main"},
		{"port taken meanwhile", "java.net.BindException: Address already in use",
			" is taken: choose another with PORT="},
	} {
		t.Run(test.name, func(t *testing.T) {
			fakeJava(t, test.prints)
			_, err := dynamolocal.Start(t.Context(), dynamolocal.Options{Dir: jars})
			if err == nil || !strings.HasSuffix(err.Error(), test.want) {
				t.Errorf("error %q\nwant %q", err, test.want)
			}
		})
	}
}

// TestPortTaken: another listener is not taken for the engine, and java is not even started.
func TestPortTaken(t *testing.T) {
	fakeJava(t, "unused")
	jars := jarFolder(t)
	for _, address := range []string{"127.0.0.1:0", ":0"} {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_, err = dynamolocal.Start(t.Context(), dynamolocal.Options{Dir: jars, Port: port})
		if want := fmt.Sprintf("port %d is taken: choose another with PORT=", port); err == nil ||
			err.Error() != want {
			t.Errorf("%s: error %v\nwant %s", address, err, want)
		}
		_ = l.Close()
	}
}

// jarFolder returns a folder that looks as if it held the engine.
func jarFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "DynamoDBLocal-0.0.0.jar"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// fakeJava makes PATH a folder with nothing but a java that prints a line and fails, or with nothing at all.
func fakeJava(t *testing.T, prints string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for java is a shell script")
	}
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	if prints == "" {
		return
	}
	script := fmt.Sprintf("#!/bin/sh\necho '%s' >&2\nexit 1\n", prints)
	if err := os.WriteFile(filepath.Join(dir, "java"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestEndpointVariable(t *testing.T) {
	engine := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"TableNames":[]}`))
	}))
	defer engine.Close()
	t.Setenv("SLUICE_DYNAMODB_ENDPOINT", engine.URL)
	t.Setenv("PATH", "") // no java: nothing can be started
	server, err := dynamolocal.Start(t.Context(), dynamolocal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if server.Endpoint() != engine.URL {
		t.Errorf("the endpoint is %s, want %s", server.Endpoint(), engine.URL)
	}
	if err := server.Stop(); err != nil {
		t.Error(err)
	}
}

func TestEndpointVariableWithoutAnswer(t *testing.T) {
	engine := httptest.NewServer(nil)
	engine.Close() // its port refuses from now on
	t.Setenv("SLUICE_DYNAMODB_ENDPOINT", engine.URL)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := dynamolocal.Start(ctx, dynamolocal.Options{})
	want := "use the DynamoDB at " + engine.URL + " (SLUICE_DYNAMODB_ENDPOINT): context deadline exceeded"
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("error %v\nwant %s…", err, want)
	}
}
