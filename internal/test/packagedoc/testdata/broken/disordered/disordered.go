// Package disordered has lines of its Example in another order.
//
//	fmt.Println(a)
//	fmt.Println(b)
//
//	a := 1
//	b := 2
package disordered
