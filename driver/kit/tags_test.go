package kit_test

import (
	"testing"

	"pgregory.net/rapid"

	"drover/driver/kit"
)

func TestEscaped(t *testing.T) {
	small := func(c byte) bool { return c >= 'a' && c <= 'z' }
	if got := kit.Escaped("a_B é", '_', small); got != "a_5f_42_20_c3_a9" {
		t.Error(got)
	}
	t.Run("what is written is read", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.String().Draw(t, "text")
			if got, ok := kit.Unescaped(kit.Escaped(text, '_', small), '_'); got != text || !ok {
				t.Errorf("%q, %v", got, ok)
			}
		})
	})
	t.Run("what was written otherwise is not read", func(t *testing.T) {
		for _, text := range []string{"_", "a_4", "_zz", "_4_41", "_+1"} {
			if got, ok := kit.Unescaped(text, '_'); ok {
				t.Errorf("%q is read as %q", text, got)
			}
		}
	})
}
