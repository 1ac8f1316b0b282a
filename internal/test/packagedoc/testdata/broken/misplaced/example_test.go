package misplaced_test

import "fmt"

func Example() {
	a := 1
	b := 2

	fmt.Println(a)
	fmt.Println(b)
	// Output:
	// 1
	// 2
}
