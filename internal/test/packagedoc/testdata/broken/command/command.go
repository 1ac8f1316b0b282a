// Command command is one.
package main
