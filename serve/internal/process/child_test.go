//go:build !unix

package process_test

// Tests with processes of their own send signals of Unix.
const asChild = "SLUICE_TEST_SERVE"

func runChild() {}
