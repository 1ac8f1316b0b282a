// Package skipping leaves out a line without a blank one.
//
//	a := 1
//	b := 2
//	fmt.Println(b)
//	// Output:
package skipping
