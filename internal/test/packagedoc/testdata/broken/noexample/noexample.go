// Package noexample has no Example.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
package noexample
