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
				t.Errorf("%s: %q is not a value", k, v)
			}
		}
		if diff := cmp.Diff(tags, letters.Read(written)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("labels that others wrote stay unchanged", func(t *testing.T) {
		theirs := map[string]string{"a": "z-", "b.2": "c", "d.x": "e"}
		if diff := cmp.Diff(theirs, letters.Read(theirs)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestEachTagSortsKeys(t *testing.T) {
	got := kit.EachTag(map[string]string{"b": "2", "a": "1"}, func(key, value string) string { return key + "=" + value })
	if diff := cmp.Diff([]string{"a=1", "b=2"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestEscaped(t *testing.T) {
	small := func(c byte) bool { return c >= 'a' && c <= 'z' }
	if got := kit.Escaped("a_B é", '_', small); got != "a_5f_42_20_c3_a9" {
		t.Error(got)
	}
	t.Run("reads what it wrote", func(t *testing.T) {
		rapid.Check(t, func(t *rapid.T) {
			text := rapid.String().Draw(t, "text")
			if got, ok := kit.Unescaped(kit.Escaped(text, '_', small), '_'); got != text || !ok {
				t.Errorf("%q, %v", got, ok)
			}
		})
	})
	t.Run("refuses a mark without its digits", func(t *testing.T) {
		for _, text := range []string{"_", "a_4", "_zz", "_4_41", "_+1"} {
			if got, ok := kit.Unescaped(text, '_'); ok {
				t.Errorf("%q is read as %q", text, got)
			}
		}
	})
}
