package breaking

import (
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/sluice-go/sluice/gen"
)

// printChanges prints each change on a line. Only json contains ignored changes. Form github-actions names
// files relative to workspace.
func printChanges(w io.Writer, format, workspace string, changes []gen.BreakingChange) error {
	for _, c := range changes {
		line := c.String()
		switch {
		case format == "json":
			var err error
			if line, err = asJSON(c); err != nil {
				return err
			}
		case c.Ignored != "":
			continue
		case format == "github-actions":
			c.File = seenFrom(workspace, c.File)
			line = asCommand(c)
		}
		if _, err := fmt.Fprintln(w, line); err != nil {
			return err
		}
	}
	return nil
}

// seenFrom returns the path of file relative to folder, or file itself if it is outside of it.
func seenFrom(folder, file string) string {
	path, err := filepath.Abs(file)
	if err != nil || folder == "" {
		return file
	}
	if path, err = filepath.Rel(folder, path); err != nil || !filepath.IsLocal(path) {
		return file
	}
	return filepath.ToSlash(path)
}

// asJSON returns c as an object that always has all keys.
func asJSON(c gen.BreakingChange) (string, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(struct {
		File     string `json:"file"`
		Line     int    `json:"line"`
		Column   int    `json:"column"`
		Rule     string `json:"rule"`
		Severity string `json:"severity"`
		Place    string `json:"place"`
		Message  string `json:"message"`
		Ignored  string `json:"ignored"`
	}{c.File, c.Line, c.Col, c.Rule, c.Severity, c.Place, c.Message, c.Ignored})
	return strings.TrimSuffix(b.String(), "\n"), err
}

// asCommand returns c as a workflow command of GitHub Actions.
func asCommand(c gen.BreakingChange) string {
	// An end of a line ends the command, and ':' and ',' end a property. '%' escapes them.
	text := []string{"%", "%25", "\r", "%0D", "\n", "%0A"}
	data := strings.NewReplacer(text...)
	property := strings.NewReplacer(append(text, ":", "%3A", ",", "%2C")...)
	return fmt.Sprintf("::error file=%s,line=%d,col=%d,title=%s::%s",
		property.Replace(c.File), c.Line, c.Col, property.Replace(c.Title()), data.Replace(c.Message))
}
