// Package late has its code too late.
//
// This is in its place.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
package late
