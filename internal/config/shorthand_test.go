package config_test

import (
	"strings"
	"testing"

	"drover/internal/config"
)

func TestShorthands(t *testing.T) {
	t.Run("the error for an input that is only a path shows the right form", func(t *testing.T) {
		_, err := config.ParseBatch("b.yaml", []byte("jobs: [{name: a, command: [sh], inputs: [count.sh]}]\n"), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "expected a mapping, not a single value\n    hint: write {path: count.sh}") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the hint for a type's key lists the type's keys, not its cloud's, and each once", func(t *testing.T) {
		err := cloud(t, "", "region: eu, types: [{name: s, qqqqqqqqq: 1}]").Decode(&keys{})
		if err == nil || !strings.Contains(err.Error(), "valid here: market, memory, name, price, vcpus") {
			t.Errorf("the error is %v", err)
		}
	})
}
