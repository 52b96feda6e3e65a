package simtest

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mutant is a variant of the engine or the loop that is broken on purpose; testdata/mutants has one per file. The
// file's first paragraph describes the fault. Then it names a source and, if it is not this one, the package whose
// worlds must find the fault. Then it has text of the source between <<<< and ====, and up to >>>> its replacement.
type mutant struct {
	name, wrong, source, worlds string
	swaps                       []swap
}

type swap struct{ old, new string }

// readMutants reads all mutants, sorted by name.
func readMutants(t *testing.T) (all []mutant) {
	files, err := filepath.Glob("testdata/mutants/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		m, err := parseMutant(string(b))
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		m.name = strings.TrimSuffix(filepath.Base(file), ".txt")
		all = append(all, m)
	}
	return all
}

func parseMutant(text string) (m mutant, err error) {
	wrong, rest, _ := strings.Cut(text, "\n\n")
	source, rest, _ := strings.Cut(rest, "\n")
	source, worlds, _ := strings.Cut(source, " ")
	m = mutant{wrong: wrong, source: source, worlds: cmp.Or(worlds, "internal/simtest")}
	for rest = strings.TrimSpace(rest); rest != ""; rest = strings.TrimSpace(rest) {
		body, found := strings.CutPrefix(rest, "<<<<\n")
		text, after, ended := strings.Cut(body, ">>>>")
		before, instead, split := strings.Cut(text, "====\n")
		if !found || !ended || !split {
			return m, errors.New("wanted <<<<, the text, ====, its replacement, and >>>>")
		}
		m.swaps, rest = append(m.swaps, swap{before, instead}), after
	}
	if len(m.swaps) == 0 {
		return m, errors.New("nothing is replaced")
	}
	return m, nil
}

// variant returns the source with the mutant's replacements. Each replaced text must occur exactly once.
func (m mutant) variant(root string) (string, error) {
	b, err := os.ReadFile(filepath.Join(root, m.source))
	if err != nil {
		return "", err
	}
	text := string(b)
	for _, s := range m.swaps {
		if n := strings.Count(text, s.old); n != 1 {
			return "", fmt.Errorf("%s has this text %d times, not once: update the mutant\n%s", m.source, n, s.old)
		}
		text = strings.Replace(text, s.old, s.new, 1)
	}
	return text, nil
}

func TestEveryMutantHasItsPlaceInTheSource(t *testing.T) {
	all := readMutants(t)
	if len(all) < 25 {
		t.Errorf("there are %d mutants, want at least 25", len(all))
	}
	for _, m := range all {
		if _, err := m.variant("../.."); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
	}
}
