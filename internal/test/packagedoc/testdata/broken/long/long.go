// Package long has too much code.
//
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
//	a := 1
package long
