package telemetry

import (
	"bytes"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
)

// covers D19
func TestDocumentation(t *testing.T) {
	text, err := os.ReadFile("../../docs/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	var want, got []string
	for _, m := range table {
		labels := ""
		if len(m.labels) > 0 {
			labels = "`" + strings.Join(m.labels, "` `") + "`"
		}
		want = append(want, strings.Join([]string{"| `" + m.name + "`", string(m.kind), labels, m.help + " |"}, " | "))
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "| `drover_") {
			got = append(got, strings.TrimSpace(line))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("docs/metrics.md (+) differs from the table (-):\n%s", diff)
	}
}

func TestAlertsQueryKnownMetrics(t *testing.T) {
	text, err := os.ReadFile("../../deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	var known []string
	for _, m := range table {
		known = append(known, m.name)
		if m.kind == histogram {
			known = append(known, m.name+"_bucket")
		}
	}
	for _, name := range regexp.MustCompile(`\bdrover_\w+`).FindAllString(string(text), -1) {
		if !slices.Contains(known, name) {
			t.Errorf("deploy/alerts.yml queries the unknown metric %s", name)
		}
	}
}

func TestEachAlertHasATestInWhichItFires(t *testing.T) {
	rules, err := os.ReadFile("../../deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	tests, err := os.ReadFile("testdata/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`alert: (\w+)`).FindAllStringSubmatch(string(rules), -1) {
		if !regexp.MustCompile(`alertname: ` + m[1] + `\n        exp_alerts:`).Match(tests) {
			t.Errorf("no test makes %s fire", m[1])
		}
	}
}

// page returns the answer to a scrape.
func page(t *testing.T, m *Telemetry) string {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	return w.Body.String()
}

// covers D19
func TestConventions(t *testing.T) {
	text := page(t, lived())
	t.Run("every metric in the table is exported once there is something to count", func(t *testing.T) {
		for _, m := range table {
			if !strings.Contains(text, "\n# TYPE "+m.name+" "+string(m.kind)+"\n") {
				t.Errorf("%s is not exported", m.name)
			}
		}
	})
	t.Run("the linter finds no problems", func(t *testing.T) {
		problems, err := promlint.New(strings.NewReader(text)).Lint()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range problems {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	})
}

func promtool(t *testing.T, in string, args ...string) {
	t.Helper()
	tool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool, from the package prometheus, is not installed")
	}
	cmd := exec.CommandContext(t.Context(), tool, args...)
	cmd.Stdin = strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil || strings.Contains(string(bytes.ToLower(out)), "error") {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
