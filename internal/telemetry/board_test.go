package telemetry

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// queries returns the queries of the Grafana dashboard.
func queries(t *testing.T) (all []string) {
	t.Helper()
	text, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Type    string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, p := range board.Panels {
		if len(p.Targets) == 0 && p.Type != "row" {
			t.Errorf("panel %s has no query", p.Title)
		}
		for _, target := range p.Targets {
			all = append(all, target.Expr)
		}
	}
	if len(all) < 20 {
		t.Fatalf("there are only %d queries", len(all))
	}
	return all
}

var (
	selector = regexp.MustCompile(`\b(drover_\w+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)\s*"`)
	grouping = regexp.MustCompile(`\b(?:by|on) \(([^)]*)\)`)
)

func TestDashboardQueriesKnownMetrics(t *testing.T) {
	for _, q := range queries(t) {
		labels := []string{"instance", "le"}
		for _, m := range selector.FindAllStringSubmatch(q, -1) {
			name := strings.TrimSuffix(m[1], "_bucket")
			at := slices.IndexFunc(table, func(l metric) bool { return l.name == name })
			if at < 0 || (name != m[1]) != (table[at].kind == histogram) {
				t.Errorf("there is no metric %s: %s", m[1], q)
				continue
			}
			labels = append(labels, table[at].labels...)
			for _, l := range matcher.FindAllStringSubmatch(m[2], -1) {
				if l[1] != "instance" && !slices.Contains(table[at].labels, l[1]) {
					t.Errorf("%s has no label %s: %s", m[1], l[1], q)
				}
			}
		}
		for _, m := range grouping.FindAllStringSubmatch(q, -1) {
			for _, l := range strings.Split(m[1], ", ") {
				if !slices.Contains(labels, l) {
					t.Errorf("no metric has the label %s: %s", l, q)
				}
			}
		}
	}
}

func TestPrometheusAcceptsTheDashboard(t *testing.T) {
	var rules strings.Builder
	rules.WriteString("groups:\n  - name: board\n    rules:\n")
	for i, q := range queries(t) {
		q = strings.NewReplacer("$__rate_interval", "5m", "$controller", ".*").Replace(q)
		rules.WriteString("      - record: board:" + strings.Repeat("x", i+1) + "\n        expr: '" + strings.ReplaceAll(q, "'", "''") + "'\n")
	}
	file := t.TempDir() + "/board.yml"
	if err := os.WriteFile(file, []byte(rules.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", file)
}
