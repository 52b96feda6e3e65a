package drover_test

import (
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tests that cover each behaviour into docs/behaviour.md")

// The columns of a row of the table.
const (
	colID = iota
	colWhat
	colWhere
	colTests
)

// A comment above a test, or a line of its own in a scenario in testdata, names what it covers.
var (
	coversTest     = regexp.MustCompile(`(?m)^// covers ([A-Z0-9 ]+)\n((?://.*\n)*func (?:Test|Fuzz))?`)
	coversScenario = regexp.MustCompile(`(?m)^# covers ([A-Z0-9 ]+)$`)
	behaviourRow   = regexp.MustCompile(`^\| ([A-Z]\d+) \|`)
	placeWord      = regexp.MustCompile("`[a-z/]+`|\\w+\\.go|driver's|drivers'")
	codeSpan       = regexp.MustCompile("`([^`]*)`")
)

func TestBehaviour(t *testing.T) {
	covered := coverage(t)
	if *update {
		writeCoverage(t, covered)
	}
	rows := table(t, "docs/behaviour.md", "Behaviour")
	t.Run("every id has a row, in order", func(t *testing.T) {
		wantIDs(t, rows, "D", 26, "C", 11, "K", 14, "P", 11, "S", 13)
	})
	t.Run("every row has a requirement, a place and a test", func(t *testing.T) {
		for _, row := range rows {
			if len(row) != 4 || slices.Contains(row, "") {
				t.Errorf("%s: has an empty cell, or does not have four cells", row[colID])
			}
		}
	})
	t.Run("every place exists", func(t *testing.T) {
		for _, row := range rows {
			for _, file := range places(row[colWhere]) {
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s: there is no %s", row[colID], file)
				}
			}
		}
	})
	lessons := table(t, "docs/behaviour.md", "Lessons")
	t.Run("every lesson has a row, with a test or a reason for having none", func(t *testing.T) {
		wantIDs(t, lessons, "F", 10, "L", 31)
		for _, row := range lessons {
			if row[2] == "" && row[3] == "" {
				t.Errorf("%s: has neither a test nor a reason", row[colID])
			}
		}
	})
	t.Run("the document counts the tests that cover each id, and every id has a row", func(t *testing.T) {
		for _, row := range rows {
			wantCovered(t, row[colID], row[colTests], covered)
		}
		for _, row := range lessons {
			wantCovered(t, row[colID], row[2], covered)
		}
		for id := range covered {
			t.Errorf("a test covers %s, which is not in docs/behaviour.md", id)
		}
	})
}

func TestSimulatedFaults(t *testing.T) {
	luck := read(t, "internal/simtest/luck.go")
	for _, row := range table(t, "docs/behaviour.md", "Simulated faults") {
		faults := codeSpan.FindAllStringSubmatch(row[1], -1)
		if len(faults) == 0 {
			t.Errorf("%s: no fault is named", row[0])
		}
		for _, fault := range faults {
			if !strings.Contains(luck, `{"`+fault[1]+`", `) {
				t.Errorf("%s: the simulated world has no fault %q", row[0], fault[1])
			}
		}
	}
}

// places returns the packages and files that a cell names: a file belongs to the package before it, or to every driver.
func places(cell string) (files []string) {
	folder := "."
	for _, word := range placeWord.FindAllString(cell, -1) {
		switch name := strings.Trim(word, "`"); {
		case strings.Contains(word, "'"):
			folder = "driver/ec2"
		case name == word:
			files = append(files, path.Join(folder, word))
		default:
			folder = name
			for _, above := range []string{"internal", "driver"} {
				if _, err := os.Stat(path.Join(above, name)); err == nil {
					folder = path.Join(above, name)
				}
			}
			files = append(files, folder)
		}
	}
	return files
}

// wantIDs checks that the rows have each letter with the numbers from 1 to its count.
func wantIDs(t *testing.T, rows [][]string, letters ...any) {
	t.Helper()
	var want, got []string
	for i := 0; i < len(letters); i += 2 {
		for n := range letters[i+1].(int) {
			want = append(want, fmt.Sprintf("%s%d", letters[i], n+1))
		}
	}
	for _, row := range rows {
		got = append(got, row[colID])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the table has %v", got)
	}
}

// wantCovered compares a cell with the number of tests that cover the id, and removes the id from covered.
func wantCovered(t *testing.T, id, cell string, covered map[string]int) {
	t.Helper()
	if want := counts(covered[id]); cell != want {
		t.Errorf("%s: %q tests cover it, the document says %q; to update it, run go test . -run TestBehaviour -update", id, want, cell)
	}
	delete(covered, id)
}

// coverage counts the tests and scenarios that cover each id.
func coverage(t *testing.T) map[string]int {
	t.Helper()
	covered := map[string]int{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		scenario := strings.Contains(name, "/testdata/")
		if err != nil || d.IsDir() || !scenario && !strings.HasSuffix(name, "_test.go") || scenario && !strings.HasPrefix(filepath.Ext(name), ".txt") {
			return err
		}
		text, pattern := read(t, name), coversTest
		if scenario {
			pattern = coversScenario
		}
		for _, m := range pattern.FindAllStringSubmatch(text, -1) {
			if !scenario && m[2] == "" {
				t.Errorf("%s: no test follows the comment covers %s", name, m[1])
			}
			for _, id := range strings.Fields(m[1]) {
				covered[id]++
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return covered
}

// counts formats a number of tests for a cell of the table.
func counts(tests int) string {
	if tests == 0 {
		return ""
	}
	return strconv.Itoa(tests)
}

// writeCoverage writes the number of tests for each id into the tables of the document.
func writeCoverage(t *testing.T, covered map[string]int) {
	t.Helper()
	const file = "docs/behaviour.md"
	var out strings.Builder
	column := colTests
	for line := range strings.Lines(read(t, file)) {
		if strings.HasPrefix(line, "## Lessons") {
			column = 2
		}
		if m := behaviourRow.FindStringSubmatch(line); m != nil {
			cells := strings.Split(strings.TrimSuffix(strings.TrimSpace(line), "|")[1:], "|")
			cells[column] = " " + counts(covered[m[1]]) + " "
			line = strings.ReplaceAll("|"+strings.Join(cells, "|")+"|\n", "|  |", "| |")
		}
		out.WriteString(line)
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}
