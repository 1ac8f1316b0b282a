// Package callers notes where a program called this library.
package callers

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
)

// Stack is the stack of a call, as runtime.Callers fills it.
type Stack [12]uintptr

// library is the path of the packages that are not shown.
const library = "github.com/sluice-go/sluice/runtime"

// String returns the file and line of the code that called, outside of this library.
func (s *Stack) String() string {
	depth := slices.Index(append(s[:], 0), 0)
	frames := runtime.CallersFrames(s[:depth])
	for {
		f, more := frames.Next()
		if rest, own := strings.CutPrefix(f.Function, library); !own || rest[0] != '.' && rest[0] != '/' || !more {
			return fmt.Sprintf("%s:%d", f.File, f.Line)
		}
	}
}
