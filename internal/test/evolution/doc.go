// Package evolution holds one schema at four moments of its life, each with its generated code. Tests have
// old and new binaries at work on one table:
//
//	v1  rpm and tpm
//	v2  tpd is added, and a user has more tpm
//	v3  rpm is removed, and callers know tpm by another name
//	v4  rpm is back, with other numbers
package evolution
