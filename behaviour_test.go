package drover_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What docs/behaviour.md may still lack. Both counts only go down: bring one down in the commit that fills in a row.
const (
	mostOpen     = 19 // rows of which something is still to come
	mostUntested = 14 // rows without a test
)

// sources of what is still to come: issues, and areas that no issue brings yet.
var sources = []string{"drover run", "drover serve", "Never leak", "The cheapest fleet", "Four clouds", "pools", "Kubernetes"}

func TestBehaviour(t *testing.T) {
	rows := table(t, "docs/behaviour.md", "Behaviour")
	t.Run("every id has its row, in order", func(t *testing.T) {
		var want, got []string
		for _, part := range []struct {
			letter string
			count  int
		}{{"D", 26}, {"C", 11}, {"K", 14}, {"P", 11}, {"S", 13}} {
			for n := range part.count {
				want = append(want, fmt.Sprintf("%s%d", part.letter, n+1))
			}
		}
		for _, row := range rows {
			got = append(got, row[0])
		}
		if !slices.Equal(got, want) {
			t.Errorf("the table has %v", got)
		}
	})
	t.Run("every test that is named is there", func(t *testing.T) {
		for _, row := range rows {
			areThere(t, row[0], testNames(row[3]))
		}
	})
	t.Run("a row has a test or says who brings it, and a test has a place that it is of", func(t *testing.T) {
		for _, row := range rows {
			from, _, _ := strings.Cut(row[4], ":")
			tests := testNames(row[3])
			switch {
			case row[1] == "":
				t.Errorf("%s: says nothing", row[0])
			case row[4] == "" && len(tests) == 0:
				t.Errorf("%s: has neither a test nor who brings it", row[0])
			case row[4] != "" && !slices.Contains(sources, from):
				t.Errorf("%s: %q is none of %v", row[0], from, sources)
			case len(tests) > 0 && row[2] == "":
				t.Errorf("%s: has a test and lives nowhere", row[0])
			}
		}
	})
	t.Run("what is missing only shrinks", func(t *testing.T) {
		open, untested := 0, 0
		for _, row := range rows {
			if row[4] != "" {
				open++
			}
			if len(testNames(row[3])) == 0 {
				untested++
			}
		}
		if open != mostOpen || untested != mostUntested {
			t.Errorf("%d rows are open and %d without a test, behaviour_test.go says %d and %d: the counts are to be exact, and to go down",
				open, untested, mostOpen, mostUntested)
		}
	})
}

var codeSpan = regexp.MustCompile("`([^`]*)`")

func TestLessons(t *testing.T) {
	rows := table(t, "docs/behaviour.md", "Lessons")
	if len(rows) != 41 {
		t.Errorf("the table has %d rows, want 10 faults and 31 lessons", len(rows))
	}
	for _, row := range rows {
		tests := testNames(row[2])
		areThere(t, row[0], tests)
		if len(tests) == 0 && row[3] == "" {
			t.Errorf("%s: has neither a test nor why there is none", row[0])
		}
	}
}

func TestBadLuck(t *testing.T) {
	luck := read(t, "internal/simtest/luck.go")
	for _, row := range table(t, "docs/behaviour.md", "Bad luck") {
		faults := testNames(row[1])
		if len(faults) == 0 {
			t.Errorf("%s: no fault is named", row[0])
		}
		for _, fault := range faults {
			if !strings.Contains(luck, `{"`+fault+`", `) {
				t.Errorf("%s: the modelled world has no fault %q", row[0], fault)
			}
		}
	}
}

// areThere wants each of the tests that a row names.
func areThere(t *testing.T, row string, names []string) {
	t.Helper()
	for _, name := range names {
		at := strings.LastIndex(name, ".")
		test, subtest, _ := strings.Cut(name[at+1:], "/")
		if !hasTest(t, name[:at], test, subtest) {
			t.Errorf("%s: there is no %s", row, name)
		}
	}
}

// testNames lists a cell's tests: the package's folder, a dot, the test, and a slash and a subtest if only that is meant.
func testNames(cell string) (names []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// hasTest reports whether a package declares the test and, unless it is empty, has the subtest: in so many words, or as a file in testdata.
func hasTest(t *testing.T, dir, name, subtest string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := filepath.Glob(filepath.Join(dir, "testdata", subtest+".*"))
	deeper, deeperErr := filepath.Glob(filepath.Join(dir, "testdata", "*", subtest+".*"))
	if err := errors.Join(err, deeperErr); err != nil {
		t.Fatal(err)
	}
	declared, has := false, subtest == "" || len(data)+len(deeper) > 0
	for _, file := range files {
		text := read(t, file)
		declared = declared || strings.Contains(text, "\nfunc "+name+"(t *testing.T) {") || strings.Contains(text, "\nfunc "+name+"(f *testing.F) {")
		has = has || strings.Contains(text, `"`+subtest+`"`)
	}
	return declared && has
}
