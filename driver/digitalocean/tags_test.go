package digitalocean

import (
	"maps"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"drover/driver"
)

var day = time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)

// covers C3
func TestTagsRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		tags := rapid.MapOfN(rapid.StringN(1, 8, 10), rapid.StringN(0, 30, 40), 0, 5).Draw(t, "tags")
		tags[driver.TagFleet] = rapid.StringMatching(`[a-zA-Z0-9-]{1,20}`).Draw(t, "fleet")
		tags[driver.TagHostKey] = rapid.StringMatching(`SHA256:[a-zA-Z0-9+/]{43}`).Draw(t, "key")
		all, err := words.Write(tags, day)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range all {
			if !goodTag.MatchString(w) || w != strings.ToLower(w) {
				t.Fatalf("%q is not a tag that DigitalOcean keeps unchanged", w)
			}
		}
		if got := words.Read(append(all, "web", "env:prod", "Drover:x", "drover:a:b", "drover:_zz")); !maps.Equal(got, tags) {
			t.Fatalf("%v became %v", tags, got)
		}
	})
}
