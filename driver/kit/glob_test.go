package kit_test

import (
	"testing"

	"drover/driver/kit"
)

func TestMatchGlob(t *testing.T) {
	for _, tt := range []struct {
		pattern, text string
		want          bool
	}{
		{"debian", "debian", true}, {"debian", "debian-12", false}, {"debian-*", "debian-12", true}, {"*12*", "debian-12-a", true}, {"*12", "debian-12-a", false},
		{"d*n*2", "debian-12", true}, {"d*x*2", "debian-12", false}, {"a*a", "a", false}, {"*", "", true}, {"", "", true}, {"x*", "debian", false},
		{"a*c", "a/b[c", true}, {"[ab]", "a", false}, {"?", "a", false},
	} {
		if kit.MatchGlob(tt.pattern, tt.text) != tt.want {
			t.Errorf("%q, %q: not %v", tt.pattern, tt.text, tt.want)
		}
	}
}
