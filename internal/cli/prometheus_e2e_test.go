//go:build e2e

package cli

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestPrometheusScrapes makes a real Prometheus with the alert rules scrape a controller, and runs each query of the
// dashboard.
func TestPrometheusScrapes(t *testing.T) {
	if _, err := exec.LookPath("prometheus"); err != nil {
		t.Skip("prometheus is not installed (package prometheus)")
	}
	p := newDaemonPlace(t, "", "budget: {hourly: 5}\npools: {web: {size: 1}}\n")
	rules, err := filepath.Abs("../../deploy/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	p.write("prometheus.yml", fmt.Sprintf("global: {scrape_interval: 500ms, evaluation_interval: 1s}\nrule_files: [%s]\nscrape_configs:\n  - job_name: drover\n    static_configs: [{targets: [%q]}]\n", rules, p.address))
	p.drover("submit", "--array", "4", "--", "sleep", "3")
	address := freeAddress(t)
	prometheus := exec.Command("prometheus", "--config.file="+filepath.Join(p.dir, "prometheus.yml"), "--storage.tsdb.path="+t.TempDir(), "--web.listen-address="+address, "--log.level=error")
	if err := prometheus.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		prometheus.Process.Kill()
		prometheus.Wait()
	})
	ask := func(query string) (found int, err error) {
		r, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			return 0, err
		}
		defer r.Body.Close()
		var answer struct {
			Error string
			Data  struct{ Result []any }
		}
		if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || answer.Error != "" {
			return 0, fmt.Errorf("%s %v", answer.Error, err)
		}
		return len(answer.Data.Result), nil
	}
	eventually(t, 30*time.Second, "prometheus has scraped the controller", func() bool {
		n, err := ask(`drover_jobs{state="succeeded"} == 4 and on (instance) count_over_time(up[1m]) > 8 and on (instance) increase(drover_attempts_ended_total{state="succeeded"}[1m]) >= 0`)
		return err == nil && n == 1
	})
	text, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	// Counters of errors have no series until an error occurs.
	may := []string{"Blocks", "Interruptions", "Failed calls to clouds", "Unresponsive instances", "Ended instances", "Jobs' share of the cost", "Dollars per hour", "Jobs waiting, by reason", "Boot times"}
	for _, panel := range board.Panels {
		for _, target := range panel.Targets {
			n, err := ask(strings.NewReplacer("$__rate_interval", "30s", "$controller", ".*").Replace(target.Expr))
			if err != nil {
				t.Errorf("%s: %s: %v", panel.Title, target.Expr, err)
			}
			optional := false
			for _, m := range may {
				optional = optional || strings.HasPrefix(panel.Title, m)
			}
			if n == 0 && !optional {
				t.Errorf("%s has nothing to show: %s", panel.Title, target.Expr)
			}
		}
	}
	if n, err := ask(`ALERTS`); err != nil {
		t.Errorf("%d alerts, %v", n, err)
	}
}
