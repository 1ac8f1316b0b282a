// Package gap leaves out a line at the blank one, and one at the end.
//
//	a := 1
//	b := 2
//
//	fmt.Println(b)
//	// Output:
package gap
