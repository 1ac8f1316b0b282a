package dynamolocal

import (
	"errors"
	"strings"
)

// ErrMissing is in the chain of every error that says this machine lacks what the engine needs: Java, a new enough
// Java, or the jars. Tests skip on it; any other error of Start is a failure.
var ErrMissing = errors.New("DynamoDB Local cannot run here")

// missingError says what the machine lacks and how to mend it, in one line.
type missingError struct {
	problem string
}

func (e *missingError) Error() string { return e.problem }

// Unwrap makes every missingError match ErrMissing.
func (e *missingError) Unwrap() error { return ErrMissing }

const javaMissing = "Java 17 or newer is not on PATH: apt-get install openjdk-17-jre-headless"

// jarsMissing is the error for a folder without the engine's jar.
func jarsMissing(dir string) error {
	return &missingError{"DynamoDB Local is not in " + dir + ": run `make dynamodb-local`"}
}

// fromOutput recognises, in what a JVM printed before it gave up, the failures that have a cure. It returns nil for the
// rest. Reading them off the one real start spares a `java -version` of 0.1 s before each.
func fromOutput(java, output string) error {
	switch {
	case strings.Contains(output, "UnsupportedClassVersionError"):
		return &missingError{java + " is older than Java 17: apt-get install openjdk-17-jre-headless"}
	case strings.Contains(output, "Unable to locate a Java Runtime"): // macOS has a java that only says this
		return &missingError{javaMissing}
	}
	return nil
}
