package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// experiment measures the figures of one or more rows at once.
type experiment struct {
	rows    []row
	measure func(context.Context) ([]float64, error) // a value for each figure, in the order of the rows
}

// row is a line of the table.
type row struct {
	what    string
	figures []figure
}

// figure is a number that is measured once in each run.
type figure struct {
	name   string // in JSON
	format string // writes its value, such as %.0fx
	want   bound
	every  bool // each run has to reach it, not the median alone
	runs   []float64
}

// bound is what a figure is to reach. The zero bound is for figures that are only stated.
type bound struct {
	op    string // ">=" or "<="; "" for none
	value float64
}

func atLeast(v float64) bound { return bound{">=", v} }
func atMost(v float64) bound  { return bound{"<=", v} }

// reached reports that v is within b.
func (b bound) reached(v float64) bool {
	switch b.op {
	case ">=":
		return v >= b.value
	case "<=":
		return v <= b.value
	}
	return true
}

// note keeps the values of one run.
func (e *experiment) note(values []float64) error {
	n := 0
	for i := range e.rows {
		for j := range e.rows[i].figures {
			if n == len(values) {
				return fmt.Errorf("%d values are too few", n)
			}
			f := &e.rows[i].figures[j]
			f.runs = append(f.runs, values[n])
			n++
		}
	}
	if n != len(values) {
		return fmt.Errorf("%d values for %d figures", len(values), n)
	}
	return nil
}

// reached reports that f is within its bound, as it is printed: what reads the same is the same.
func (f *figure) reached() bool {
	if !f.every {
		return f.reaches(median(f.runs))
	}
	return !slices.ContainsFunc(f.runs, func(v float64) bool { return !f.reaches(v) })
}

// reaches reports that v is within f's bound.
func (f *figure) reaches(v float64) bool {
	printed, err := strconv.ParseFloat(f.number(v), 64)
	return err == nil && f.want.reached(printed)
}

// matching returns the experiments of which some row's text matches.
func matching(all []experiment, only *regexp.Regexp) []experiment {
	return slices.DeleteFunc(all, func(e experiment) bool {
		return !slices.ContainsFunc(e.rows, func(r row) bool { return only.MatchString(r.what) })
	})
}

// rowsOf returns the rows whose text matches.
func rowsOf(all []experiment, only *regexp.Regexp) (rows []row) {
	for _, e := range all {
		for _, r := range e.rows {
			if only.MatchString(r.what) {
				rows = append(rows, r)
			}
		}
	}
	return rows
}
