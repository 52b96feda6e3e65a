package kit

import (
	"slices"
	"strings"
	"testing"
	"time"

	"drover"
	"drover/driver"
)

func TestWords(t *testing.T) {
	words := Words{Prefix: "drover", Max: 255, Mark: '_', Single: []string{driver.TagName}, Plain: func(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '-' }}
	day := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	t.Run("a tag that is too long is refused", func(t *testing.T) {
		_, err := words.Write(map[string]string{driver.TagFleet: "lab", "k": strings.Repeat("A", 100)}, day)
		if drover.KindOf(err) != drover.KindInvalid {
			t.Error(err)
		}
	})
	t.Run("the later of a key's two words counts", func(t *testing.T) {
		early, late := words.word("lab", driver.TagName, "z", day), words.word("lab", driver.TagName, "a", day.Add(time.Second))
		if got := words.Read([]string{early, late})[driver.TagName]; got != "a" {
			t.Errorf("%q counts", got)
		}
	})
	t.Run("unchanged tags are not written again", func(t *testing.T) {
		there, _ := words.Write(map[string]string{driver.TagFleet: "lab", driver.TagName: "a", "k": "1"}, day)
		wanted, _ := words.Write(map[string]string{driver.TagFleet: "lab", driver.TagName: "a", "k": "2"}, day.Add(time.Hour))
		add, remove := words.Change(append(there, "somebody:elses"), wanted)
		if !slices.Equal(add, []string{"drover:lab:k:2"}) || !slices.Equal(remove, []string{"drover:lab:k:1"}) {
			t.Errorf("added %q, removed %q", add, remove)
		}
	})
}
