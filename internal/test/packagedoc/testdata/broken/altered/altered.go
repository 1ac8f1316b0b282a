// Package altered has code that differs from its Example.
//
//	a := 1
//	b := 3
//
//	fmt.Println(a)
//	fmt.Println(b)
package altered
