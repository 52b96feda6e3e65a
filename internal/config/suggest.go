package config

import (
	"slices"
	"strings"
)

// suggest returns the hint for a word that should be one of known: the nearest one, if one is near, otherwise all of
// them if they are few.
func suggest(word string, known []string) string {
	known = known[:min(len(known), 1000)] // enough to help, few enough to be fast
	switch best := nearest(word, known); {
	case best != "":
		return "did you mean " + best + "?"
	case len(known) == 0 || len(known) > 20:
		return ""
	}
	known = slices.Clone(known)
	slices.Sort(known)
	known = slices.Compact(known)
	return "valid here: " + strings.Join(known, ", ")
}

// nearest returns the word that this one may be a misspelling of, "" if none is near.
func nearest(word string, known []string) (best string) {
	least := max(1, len(word)/3) + 1
	for _, k := range known {
		if d := distance(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// distance is how many letters must be inserted, dropped, replaced or swapped with their neighbour to turn a into b.
// Words much longer or shorter than a key are not compared.
func distance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	before, row := make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		next := make([]int, len(b)+1)
		next[0] = i
		for j := 1; j <= len(b); j++ {
			change := row[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			next[j] = min(row[j]+1, next[j-1]+1, change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				next[j] = min(next[j], before[j-2]+1)
			}
		}
		before, row = row, next
	}
	return row[len(b)]
}
