//go:build e2e

package telemetry

import "testing"

// TestPromtool checks the metrics and the alerts with Prometheus's own checker, which takes seconds.
// covers D19
func TestPromtool(t *testing.T) {
	t.Run("accepts the metrics", func(t *testing.T) {
		promtool(t, page(t, lived()), "check", "metrics")
	})
	t.Run("accepts the alerts, and they fire when they should", func(t *testing.T) {
		promtool(t, "", "check", "rules", "../../deploy/alerts.yml")
		promtool(t, "", "test", "rules", "testdata/alerts.yml")
	})
}
