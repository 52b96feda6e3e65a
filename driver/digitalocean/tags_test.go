package digitalocean

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"

	"pgregory.net/rapid"
)

var day = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// covers C3
func TestTagsComeBackAsTheyWere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.MapOfN(rapid.StringN(1, 8, 10), rapid.StringN(0, 30, 40), 0, 5).Draw(t, "tags")
		tags[driver.TagFleet] = rapid.StringMatching(`[a-zA-Z0-9-]{1,20}`).Draw(t, "fleet")
		tags[driver.TagHostKey] = rapid.StringMatching(`SHA256:[a-zA-Z0-9+/]{43}`).Draw(t, "key")
		all, err := words(tags, day)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			if !goodTag.MatchString(w) || w != strings.ToLower(w) {
				t.Fatalf("%q is no tag that DigitalOcean keeps as it is", w)
			}
		}
		if got := tagsOf(append(all, "web", "env:prod", "Drover:x", "drover:a:b", "drover:_zz")); !maps.Equal(got, tags) {
			t.Fatalf("%v became %v", tags, got)
		}
	})
}

func TestWords(t *testing.T) {
	t.Run("a tag that is too long is refused", func(t *testing.T) {
		_, err := words(map[string]string{driver.TagFleet: "lab", "k": strings.Repeat("A", 100)}, day)
		if drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("of two words of a key the later counts", func(t *testing.T) {
		early, late := word("lab", driver.TagName, "z", day), word("lab", driver.TagName, "a", day.Add(time.Second))
		if got := tagsOf([]string{early, late})[driver.TagName]; got != "a" {
			t.Errorf("%q counts", got)
		}
	})
	t.Run("what is the same already is not written again", func(t *testing.T) {
		there, _ := words(map[string]string{driver.TagFleet: "lab", driver.TagName: "a", "k": "1"}, day)
		wanted, _ := words(map[string]string{driver.TagFleet: "lab", driver.TagName: "a", "k": "2"}, day.Add(time.Hour))
		add, remove := change(append(there, "somebody:elses"), wanted)
		if !slices.Equal(add, []string{"drover:lab:k:2"}) || !slices.Equal(remove, []string{"drover:lab:k:1"}) {
			t.Errorf("added %q, removed %q", add, remove)
		}
	})
}
