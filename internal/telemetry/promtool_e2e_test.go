//go:build e2e

package telemetry

import "testing"

// TestPromtool has Prometheus' own checker, which takes seconds, read the metrics and the alerts.
// covers D19
func TestPromtool(t *testing.T) {
	t.Run("has nothing to say of the metrics", func(t *testing.T) {
		promtool(t, page(t, lived()), "check", "metrics")
	})
	t.Run("can read the alerts, which fire when they should", func(t *testing.T) {
		promtool(t, "", "check", "rules", "../../deploy/alerts.yml")
		promtool(t, "", "test", "rules", "testdata/alerts.yml")
	})
}
