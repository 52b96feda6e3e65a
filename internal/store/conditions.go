package store

import (
	"slices"
	"strings"
)

// conditions are the conditions that a row must meet, with the query's arguments. Only conditions in use become part of
// the query, so that SQLite sees which index to use.
type conditions struct {
	terms []string
	args  []any
}

func (c *conditions) add(term string, args ...any) {
	c.terms, c.args = append(c.terms, term), append(c.args, args...)
}

func (c *conditions) addIf(asked bool, term string, args ...any) {
	if asked {
		c.add(term, args...)
	}
}

// and returns the conditions with one more.
func (c conditions) and(term string, args ...any) conditions {
	more := conditions{slices.Clone(c.terms), slices.Clone(c.args)}
	more.add(term, args...)
	return more
}

// query returns a query for the rows that meet the conditions.
func (c conditions) query(from string) string {
	if len(c.terms) == 0 {
		return from
	}
	return from + ` WHERE ` + strings.Join(c.terms, ` AND `)
}
