// Package lengthy has an Example of too many lines.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
package lengthy
