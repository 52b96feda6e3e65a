package drover_test

import (
	"testing"

	"drover"
)

func TestShares(t *testing.T) {
	t.Run("are by user or by a label's values", func(t *testing.T) {
		for text, label := range map[string]string{"user": "", "label:project": "project", "label:a/b": "a/b"} {
			var by drover.ShareBy
			if err := by.UnmarshalText([]byte(text)); err != nil || by.Label() != label {
				t.Errorf("%q: label %q, %v", text, by.Label(), err)
			}
		}
		for _, text := range []string{"", "User", "label:", "label:-", "label", "project"} {
			var by drover.ShareBy
			if err := by.UnmarshalText([]byte(text)); err == nil || by != "" {
				t.Errorf("%q is accepted, as %q", text, by)
			}
		}
	})
	t.Run("have their own weight, or the default, or 1", func(t *testing.T) {
		some := drover.Shares{Weights: map[string]int{"ada": 4}, Default: 2}
		if some.Weight("ada") != 4 || some.Weight("bob") != 2 || (drover.Shares{}).Weight("ada") != 1 {
			t.Errorf("ada has %d, bob %d, and ada without weights %d", some.Weight("ada"), some.Weight("bob"), (drover.Shares{}).Weight("ada"))
		}
	})
}
