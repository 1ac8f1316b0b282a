package dynamolocal

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/sluice-go/sluice/internal/tool/gomod"
)

const folderVariable = "SLUICE_DYNAMODB_LOCAL"

// folder returns the folder that holds the engine's jars: dir, else that of SLUICE_DYNAMODB_LOCAL, else
// .build/dynamodb-local in the root of the workspace.
func folder(dir string) (string, error) {
	if dir == "" {
		dir = os.Getenv(folderVariable)
	}
	if dir == "" {
		// `go test` runs a package's tests in its own directory, so a relative path would not do.
		root, err := gomod.Workspace(".")
		if err != nil {
			return "", fmt.Errorf("%w: set %s to the folder with DynamoDB Local's jars", err, folderVariable)
		}
		dir = filepath.Join(root, ".build", "dynamodb-local")
	}
	jars, err := filepath.Glob(filepath.Join(dir, "DynamoDBLocal-*.jar"))
	if err != nil || len(jars) == 0 { // an error is a folder name that is a bad pattern: no jars there either
		return "", jarsMissing(dir)
	}
	return dir, nil
}
