package main

import (
	"context"
	"errors"
	"io"
)

// live is where three regions will run in this process.
func live(context.Context, io.Writer) error { return errors.New("add -simulate") }
