package kit_test

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"drover/driver/kit"
)

func TestLabels(t *testing.T) {
	letters := kit.Labels{Max: 9, Mark: 'z', Joint: ".", Plain: func(c byte, edge bool) bool { return c >= 'a' && c <= 'z' || c == '-' && !edge }}
	fits := regexp.MustCompile(`^([a-z0-9]([a-z0-9-]{0,7}[a-z0-9])?)?$`)
	if diff := cmp.Diff(map[string]string{"k": "ab-cz7a", "long": "abcdefg", "long.2": "hij"}, letters.Write(map[string]string{"k": "ab-cz", "long": "abcdefghij"})); diff != "" {
		t.Error(diff)
	}
	rapid.Check(t, func(t *rapid.T) {
		tags := map[string]string{"a": rapid.String().Draw(t, "a"), "b": rapid.StringOf(rapid.RuneFrom([]rune("ab-zé"))).Draw(t, "b")}
		written := letters.Write(tags)
		for k, v := range written {
			if !fits.MatchString(v) {
				t.Errorf("%s: %q is no value", k, v)
			}
		}
		if diff := cmp.Diff(tags, letters.Read(written)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("what others wrote is taken as it is", func(t *testing.T) {
		theirs := map[string]string{"a": "z-", "b.2": "c", "d.x": "e"}
		if diff := cmp.Diff(theirs, letters.Read(theirs)); diff != "" {
			t.Error(diff)
		}
	})
}
