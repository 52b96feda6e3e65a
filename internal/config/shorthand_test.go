package config_test

import (
	"strings"
	"testing"

	"drover/internal/config"
)

func TestShorthands(t *testing.T) {
	t.Run("an input that is a path alone is told how it is written", func(t *testing.T) {
		_, err := config.ParseBatch("b.yaml", []byte("jobs: [{name: a, command: [sh], inputs: [count.sh]}]\n"), t.TempDir())
		if err == nil || !strings.Contains(err.Error(), "expected a mapping, not a single value\n    hint: write {path: count.sh}") {
			t.Errorf("the error is %v", err)
		}
	})
	t.Run("the keys of a type are not those of its cloud, and none is named twice", func(t *testing.T) {
		err := cloud(t, "", "region: eu, types: [{name: s, qqqqqqqqq: 1}]").Decode(&keys{})
		if err == nil || !strings.Contains(err.Error(), "valid here: market, memory, name, price, vcpus") {
			t.Errorf("the error is %v", err)
		}
	})
}
