// Package textfile reads files that people write, such as limits.yaml, with a bound on their length.
package textfile

import (
	"fmt"
	"io"
	"os"
)

// most is the number of bytes that a file can have: far more than anybody writes. Without a bound, a device
// such as /dev/zero would take all of the machine's memory.
const most = 16 << 20

// Read is os.ReadFile for a file of at most 16 MiB.
func Read(path string) (text []byte, err error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // it was only read
	text, err = io.ReadAll(io.LimitReader(file, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s has more than %d MiB: check that it is the file that is meant, or split it",
			path, most>>20)
	}
	return text, nil
}
