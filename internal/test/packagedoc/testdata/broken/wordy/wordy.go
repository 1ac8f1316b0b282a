// Package wordy begins with a sentence. It goes on.
//
//	a := 1
//	b := 2
//
//	fmt.Println(a)
//	fmt.Println(b)
package wordy
