package daemon

import (
	"testing"

	"drover/internal/config"
)

// covers P11
func TestNameOfTheAttributeThatDescribesAPool(t *testing.T) {
	for name, c := range map[string]struct{ configured, environment, want string }{
		"is the old program's by default":    {"", "", "prevmtable"},
		"can be configured":                  {"pool", "", "pool"},
		"is overridden by the environment's": {"pool", "other", "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PREVMTABLE_ATTRIBUTE", c.environment)
			if got := attributeName(&config.Config{PoolsFrom: config.PoolsFrom{Attribute: c.configured}}); got != c.want {
				t.Errorf("the name is %q, not %q", got, c.want)
			}
		})
	}
}
