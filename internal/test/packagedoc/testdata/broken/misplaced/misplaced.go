// Package misplaced has the phrase too late.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
//
// Not for import: nobody reads this far.
package misplaced
