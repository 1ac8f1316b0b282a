// Package unparsed has code that is not Go.
//
//	a := 1
//	b := 2 3
//	fmt.Println(a)
//	fmt.Println(b)
package unparsed
