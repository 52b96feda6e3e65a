package drover_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// What docs/behaviour.md may still lack. Both counts only go down: bring one down in the commit that fills in a row.
const (
	mostOpen     = 61 // rows of which something is still to come
	mostUntested = 47 // rows without a test
)

// sources of what is still to come: issues, and areas that no issue brings yet.
var sources = []string{"drover run", "drover serve", "Never leak", "The cheapest fleet", "Four clouds", "pools", "Kubernetes", "packages"}

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
			for _, name := range testNames(row) {
				dir, test, _ := strings.Cut(name, ".Test")
				if !hasTest(t, dir, "Test"+test) {
					t.Errorf("%s: package %s has no Test%s", row[0], dir, test)
				}
			}
		}
	})
	t.Run("a row has a test or says who brings it, and a test has a place that it is of", func(t *testing.T) {
		for _, row := range rows {
			from, _, _ := strings.Cut(row[4], ":")
			tests := testNames(row)
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
			if len(testNames(row)) == 0 {
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

// testNames lists a row's tests: the package's folder, a dot, the name.
func testNames(row []string) (names []string) {
	for _, m := range codeSpan.FindAllStringSubmatch(row[3], -1) {
		names = append(names, m[1])
	}
	return names
}

// hasTest reports whether a package declares the test.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "\nfunc "+name+"(t *testing.T) {") {
			return true
		}
	}
	return false
}
