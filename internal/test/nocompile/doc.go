// Package nocompile holds programs that must not compile: mistakes that the generated types turn into compile
// errors. Each folder of testdata is one; errors.txt has what the compiler says. One folder, accepted, must
// compile.
package nocompile
