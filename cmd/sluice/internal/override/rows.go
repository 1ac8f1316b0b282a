package override

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluice-go/sluice/cmd/sluice/internal/bucketstore"
	"github.com/sluice-go/sluice/cmd/sluice/internal/term"
	"github.com/sluice-go/sluice/runtime/store"
)

// row is an override as a file has it, and the line where it begins.
type row struct {
	overrideJSON

	line int
}

// columns are those of a CSV file. Rows of one entity or kind and resource make one override.
var columns = []string{
	"at", "resource", "revision", "limit", "capacity_milli", "burst_milli", "refill_milli", "period_ms",
}

// rowWriter writes overrides in a format.
type rowWriter struct {
	out   *bufio.Writer
	table *csv.Writer // nil for JSON lines
}

func newRowWriter(w io.Writer, format string) *rowWriter {
	out := &rowWriter{out: bufio.NewWriter(w)}
	if format == formatCSV {
		out.table = csv.NewWriter(out.out)
		_ = out.table.Write(columns) // flush returns its error
	}
	return out
}

// write writes an override. An id that the format cannot have is a Go string, in double quotes.
func (w *rowWriter) write(o overrideJSON) error {
	if w.table == nil {
		if !utf8.ValidString(o.At) {
			o.At = strconv.Quote(o.At)
		}
		line, err := term.JSON(o, "")
		if err != nil {
			return err
		}
		_, err = w.out.Write(append(bytes.TrimRight(line, "\n"), '\n'))
		return err
	}
	if !store.IsPlain(o.At) {
		o.At = strconv.Quote(o.At)
	}
	names := make([]string, 0, len(o.Limits))
	for name := range o.Limits {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		l, number := o.Limits[name], func(n int64) string { return strconv.FormatInt(n, 10) }
		if err := w.table.Write([]string{o.At, o.Resource, o.Revision, name, number(l.Capacity), number(l.Burst),
			number(l.Refill), number(l.Period)}); err != nil {
			return err
		}
	}
	return nil
}

// flush writes what is left.
func (w *rowWriter) flush() error {
	if w.table != nil {
		if w.table.Flush(); w.table.Error() != nil {
			return w.table.Error()
		}
	}
	return w.out.Flush()
}

// readRows reads all rows in a format.
func readRows(in io.Reader, format string) ([]row, problems) {
	if format == formatCSV {
		return readCSV(in)
	}
	return readLines(in)
}

// longestLine bounds a line, in bytes.
const longestLine = 1 << 20

// readLines reads JSON lines. Empty lines are skipped.
func readLines(in io.Reader) (rows []row, wrong problems) {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, longestLine)
	line := 0
	for lines.Scan() {
		line++
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		next := row{line: line}
		decoder := json.NewDecoder(bytes.NewReader(lines.Bytes()))
		decoder.DisallowUnknownFields()
		err := decoder.Decode(&next.overrideJSON)
		if err == nil && decoder.More() {
			err = errors.New("more than one object")
		}
		if err == nil {
			next.At, err = unquoted(next.At)
		}
		if err != nil {
			wrong.add(line, "%s: write an object as `sluice override export` does", term.Escape(err.Error()))
			continue
		}
		rows = append(rows, next)
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		wrong.add(line+1, "more than 1 MiB: write an object of at most 1 MiB on each line")
	case err != nil:
		wrong.add(line+1, "%v: pass a file that `sluice override export` wrote", err)
	}
	return rows, wrong
}

// readCSV reads rows of columns. Its rows are in the order of their first lines.
func readCSV(in io.Reader) (rows []row, wrong problems) {
	table := csv.NewReader(in)
	table.FieldsPerRecord = len(columns)
	index := map[[2]string]int{}
	for first := true; ; first = false {
		fields, err := table.Read()
		if errors.Is(err, io.EOF) {
			return rows, wrong
		}
		if parse, ok := errors.AsType[*csv.ParseError](err); ok {
			wrong.add(parse.Line, "%v: want the columns %s", parse.Err, strings.Join(columns, ","))
			if errors.Is(err, csv.ErrFieldCount) {
				continue
			}
			return rows, wrong
		}
		if err != nil {
			wrong.add(1, "%v: pass a file that can be read", err)
			return rows, wrong
		}
		line, _ := table.FieldPos(0)
		if first {
			if !slices.Equal(fields, columns) {
				wrong.add(line, "the header is not %s: write it as `sluice override export --format csv` does",
					strings.Join(columns, ","))
				return nil, wrong
			}
			continue
		}
		key := [2]string{fields[0], fields[1]}
		i, found := index[key]
		if !found {
			i = len(rows)
			index[key] = i
			next := row{overrideJSON{At: fields[0], Resource: fields[1], Revision: fields[2],
				Limits: map[string]bucketstore.LimitJSON{}}, line}
			if next.At, err = unquoted(fields[0]); err != nil {
				wrong.add(line, "at %s: %v: write an entity or a kind as export does", store.Quote(fields[0]), err)
			}
			rows = append(rows, next)
		}
		addLimit(&rows[i], fields, line, &wrong)
	}
}

// addLimit adds the limit of a row of CSV to r.
func addLimit(r *row, fields []string, line int, wrong *problems) {
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(fields[4+i], 10, 64)
		if err != nil {
			wrong.add(line, "%s %s is not a whole number: write it in millitokens, and the period in ms",
				columns[4+i], store.Quote(fields[4+i]))
		}
		numbers[i] = n
	}
	if fields[2] != r.Revision {
		wrong.add(line, "revision %s differs from %s in line %d, of the same override: write the same one",
			store.Quote(fields[2]), store.Quote(r.Revision), r.line)
	}
	if _, twice := r.Limits[fields[3]]; twice {
		wrong.add(line, "limit %s of %s is given twice: leave one out", store.Quote(fields[3]), store.Quote(r.At))
	}
	r.Limits[fields[3]] = bucketstore.LimitJSON{Capacity: numbers[0], Burst: numbers[1], Refill: numbers[2],
		Period: numbers[3]}
}

// unquoted returns the id of a field, which is a Go string if it begins with a double quote.
func unquoted(at string) (string, error) {
	if !strings.HasPrefix(at, `"`) {
		return at, nil
	}
	id, err := strconv.Unquote(at)
	if err != nil {
		return at, fmt.Errorf("not a Go string")
	}
	return id, nil
}
