package contexts

import (
	"context"
	"errors"
	"sync"
	"testing"
)

// TestEndAtOnce: a call of End finds all contexts ended, also if another call was first and is still at
// it. A process that was frozen has several: the keeper, and each caller that looks at its context.
func TestEndAtOnce(t *testing.T) {
	lost := errors.New("lost")
	for range 20 {
		var s Set
		var last context.Context
		for range 2_000 {
			last, _ = s.Add(t.Context(), false)
		}
		var begin, callers sync.WaitGroup
		begin.Add(1)
		for range 4 {
			callers.Go(func() {
				begin.Wait()
				s.End(lost, true)
				if err := context.Cause(last); !errors.Is(err, lost) {
					t.Errorf("the last context has ended by %v", err)
				}
			})
		}
		begin.Done()
		callers.Wait()
		if n := s.Len(); n != 0 {
			t.Errorf("%d contexts are kept", n)
		}
	}
}
