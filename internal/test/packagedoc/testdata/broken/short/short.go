// Package short has too little code.
//
//	a := 1
//	b := 2
//	fmt.Println(a)
package short
