package region_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/sluice-go/sluice/internal/regionsim"
)

func TestDbg(t *testing.T) {
	seed, _ := strconv.ParseUint(os.Getenv("SEED"), 0, 64)
	w := calm(small(seed, func(w *regionsim.World) { w.New = newSync }))
	for e := range w.Entities {
		for r := range w.Resources {
			fmt.Println(e, r, w.Load(e, r), w.Resources[r])
		}
	}
	w.Trace = func(s string) { fmt.Println(s) }
	w.Watch = func(s regionsim.Sample) { fmt.Printf("%+v\n", s) }
	r := w.Run()
	fmt.Printf("%+v\n", r)
}
