// Package closed has no Example. Not for import: the package fine imports it.
package closed
