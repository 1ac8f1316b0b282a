// Package fine keeps all rules.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
//
// The code leaves nothing out.
package fine
