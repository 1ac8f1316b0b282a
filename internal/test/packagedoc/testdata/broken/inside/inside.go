// Package inside has its Example in the package itself.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
package inside
