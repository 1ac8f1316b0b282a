package cli

import (
	"reflect"
	"strconv"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sluice-go/sluice/cmd/sluice/internal/program"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/internal/tool/secrets"
	"github.com/sluice-go/sluice/runtime/store"
)

// checkArguments returns a usage error for an argument with a control character, a bidirectional control or
// invalid UTF-8. Errors and results name arguments, and a script may have taken one from a client.
func checkArguments(args []string) error {
	for _, arg := range args {
		if wrong := store.CheckText(arg); wrong != "" {
			return program.Usagef("argument %s %s: leave it out; an entity can be written in double quotes, as a "+
				"Go string: '\"user-\\x1b\"'", secrets.Redis(term.Quote(arg)), wrong)
		}
	}
	return nil
}

// decodeEntity reads an entity. In double quotes it is a Go string, as commands print what cannot be seen. No
// entity begins with a quotation mark, since none of their kinds does.
func decodeEntity(ctx *kong.DecodeContext, target reflect.Value) error {
	var text string
	if err := ctx.Scan.PopValueInto("entity", &text); err != nil {
		return err
	}
	if strings.HasPrefix(text, `"`) {
		literal := text
		var err error
		if text, err = strconv.Unquote(literal); err != nil {
			return program.Usagef("%s is not a Go string: write an entity as commands print it", literal)
		}
	}
	if target.Kind() == reflect.Pointer {
		target.Set(reflect.ValueOf(&text))
		return nil
	}
	target.SetString(text)
	return nil
}
