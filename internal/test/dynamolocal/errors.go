package dynamolocal

import (
	"errors"
	"strings"
)

const javaMissing = "no Java 17 or newer on PATH: apt-get install openjdk-17-jre-headless"

// jarsMissing is the error for a folder without the engine's jar.
func jarsMissing(dir string) error {
	return errors.New("DynamoDB Local is not in " + dir + ": run `make dynamodb-local`")
}

// fromOutput recognises, in what a JVM printed before it gave up, the failures that have a cure. It returns
// nil for the rest. Reading them off the one real start spares a `java -version` of 0.1 s before each.
func fromOutput(java, output string) error {
	switch {
	case strings.Contains(output, "UnsupportedClassVersionError"):
		return errors.New(java + " is older than Java 17: apt-get install openjdk-17-jre-headless")
	case strings.Contains(output, "Unable to locate a Java Runtime"): // macOS has a java that only says this
		return errors.New(javaMissing)
	}
	return nil
}
