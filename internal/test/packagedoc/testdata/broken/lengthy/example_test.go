package lengthy_test

import "fmt"

func Example() {
	a := 1
	b := 2

	fmt.Println(a)
	fmt.Println(b)
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	a++
	fmt.Println(a)
	// Output:
	// 1
	// 2
	// 34
}
