// Command generate is `sluice generate` alone. It builds in a fraction of the time of the whole command, for
// it imports no client of AWS: `make demo` uses it.
package main

import (
	"fmt"
	"os"

	"github.com/sluice-go/sluice/gen"
)

func main() {
	if err := generate(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// generate writes what each of the files gives.
func generate(files []string) error {
	for _, file := range files {
		result, err := gen.Run(gen.Config{Schema: file})
		if err != nil {
			return err
		}
		if err := result.Write(); err != nil {
			return err
		}
		fmt.Printf("%s: %d files, %d written\n", file, len(result.Files), len(result.Changed()))
	}
	return nil
}
