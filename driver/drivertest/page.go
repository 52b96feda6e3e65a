package drivertest

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"drover/driver/kit"
)

// Page is a driver's page in docs/clouds, with which its tests compare the driver.
type Page struct{ name, text string }

// ReadPage reads a driver's page; the working folder is the driver's.
func ReadPage(t testing.TB, name string) Page {
	t.Helper()
	return readPage(t, "docs/clouds/"+name+".md")
}

func readPage(t testing.TB, name string) Page {
	t.Helper()
	text, err := os.ReadFile("../../" + name)
	Must(t, err)
	return Page{name, string(text)}
}

// Has reports whether the page contains a text.
func (p Page) Has(text string) bool { return strings.Contains(p.text, text) }

// Rows returns the first table under a heading, without its header; cells are without code marks.
func (p Page) Rows(t testing.TB, heading string) (rows [][]string) {
	t.Helper()
	_, section, _ := strings.Cut(p.text, "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for line := range strings.Lines(section) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "|") {
			if len(rows) > 0 {
				break
			}
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line[1:], "|"), "|")
		for i := range cells {
			cells[i] = strings.Trim(cells[i], " `")
		}
		rows = append(rows, cells)
	}
	if len(rows) < 3 {
		t.Fatalf("%s has no table under %q", p.name, heading)
	}
	return rows[2:]
}

// sources matches a table's last column: names of links, and the words for an answer that no vendor documents.
var sources = regexp.MustCompile(`^(\[[a-z0-9-]+\]|seen|unconfirmed)( \[[a-z0-9-]+\]| seen|,? unconfirmed)*$`)

// Sourced reports each row of the table under a heading whose last column does not name its sources: links whose
// addresses are at the end of the page, "seen" for what others reported and no vendor documents, or "unconfirmed".
func (p Page) Sourced(t testing.TB, heading string) {
	t.Helper()
	for i, row := range p.Rows(t, heading) {
		from := row[len(row)-1]
		if !sources.MatchString(from) {
			t.Errorf("%s, row %d under %q names no source: %q", p.name, i+1, heading, from)
		}
		for _, name := range strings.Fields(from) {
			if strings.HasPrefix(name, "[") && !p.Has("\n"+name+": https://") {
				t.Errorf("%s, row %d under %q: %s has no address", p.name, i+1, heading, name)
			}
		}
	}
}

// Classes returns the first two columns of the table under "Errors": an answer and its class. A row may contain several
// answers of one class.
func (p Page) Classes(t testing.TB) (classes [][2]string) {
	t.Helper()
	for _, row := range p.Rows(t, "Errors") {
		for _, answer := range strings.Split(row[0], "`, `") {
			classes = append(classes, [2]string{answer, row[1]})
		}
	}
	return classes
}

// ShowsLag reports an error if the page about drivers gives another list lag for a cloud.
func ShowsLag(t testing.TB, cloud string, lag time.Duration) {
	t.Helper()
	for _, row := range readPage(t, "docs/drivers.md").Rows(t, "How far lists lag") {
		if row[0] != cloud {
			continue
		}
		shown, err := time.ParseDuration(strings.NewReplacer(" ", "", "min", "m", "none", "0").Replace(row[1]))
		if err != nil || shown != lag {
			t.Errorf("docs/drivers.md says that the lists of %s lag by %q, but the driver says %v", cloud, row[1], lag)
		}
		return
	}
	t.Errorf("docs/drivers.md does not say how far the lists of %s lag", cloud)
}

// Words returns what a pattern's first group matches under a heading, each once and sorted, such as the permissions in
// a policy.
func (p Page) Words(t testing.TB, heading string, pattern *regexp.Regexp) (words []string) {
	t.Helper()
	_, section, _ := strings.Cut(p.text, "# "+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, m := range pattern.FindAllStringSubmatch(section, -1) {
		words = append(words, m[1])
	}
	if len(words) == 0 {
		t.Fatalf("%s has no %s under %q", p.name, pattern, heading)
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// Rates reads the table under "Rates": the buckets named in the first column, with the burst in the given column and
// the rate per second in the next.
func (p Page) Rates(t testing.TB, column int) map[string]kit.Rate {
	t.Helper()
	rates := map[string]kit.Rate{}
	for _, row := range p.Rows(t, "Rates") {
		var r kit.Rate
		if _, err := fmt.Sscan(row[column]+" "+row[column+1], &r.Burst, &r.PerSecond); err != nil {
			t.Fatalf("%s, under \"Rates\": %q: %v", p.name, row, err)
		}
		for _, bucket := range strings.Split(row[0], ", ") {
			rates[bucket] = r
		}
	}
	return rates
}
