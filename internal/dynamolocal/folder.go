package dynamolocal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

const folderVariable = "SLUICE_DYNAMODB_LOCAL"

// folder returns the folder that holds the engine's jars: dir, else that of SLUICE_DYNAMODB_LOCAL, else
// .build/dynamodb-local in the module root.
func folder(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv(folderVariable)
	}
	if dir == "" {
		root, err := moduleRoot()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(root, ".build", "dynamodb-local")
	}
	jars, err := filepath.Glob(filepath.Join(dir, "DynamoDBLocal-*.jar"))
	if err != nil || len(jars) == 0 { // an error is a folder name that is a bad pattern: no jars there either
		return "", jarsMissing(dir)
	}
	return dir, nil
}

// moduleRoot walks up from the working directory to the one with a go.mod. `go test` runs a package's tests in its own
// directory, so a relative path would not do.
func moduleRoot() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("find the module root: %w", err)
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir, nil
		}
		if !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("find the module root: %w", err)
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above " + start + ": set " + folderVariable + " to the folder with DynamoDB Local's jars")
		}
	}
}
