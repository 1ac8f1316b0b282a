package main

import (
	"context"
	"errors"
	"io"
)

func live(context.Context, settings, io.Writer) error {
	return errors.New("pass -simulate")
}
