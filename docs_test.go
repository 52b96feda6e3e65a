package drover_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"drover/driver/external"
	"drover/driver/local"
	"drover/internal/config"
	"drover/internal/kubetest"
)

// documents lists all documents written for people.
func documents(t *testing.T) []string {
	t.Helper()
	docs, err := filepath.Glob("docs/*.md")
	if err != nil || len(docs) == 0 {
		t.Fatalf("no documents: %v", err)
	}
	return append(docs, "README.md", "CONTRIBUTING.md")
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// anchors returns the link anchors of a document's headings.
func anchors(text string) (all []string) {
	for _, m := range headings.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.ReplaceAll(punctuation.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

var (
	configurations = regexp.MustCompile("(?ms)^```yaml\n(version: .*?)^```")
	links          = regexp.MustCompile(`\]\(([^)#\s]*)(?:#([^)\s]+))?\)`)
	headings       = regexp.MustCompile(`(?m)^#+ (.*)$`)
	punctuation    = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	targets        = regexp.MustCompile("(?:`|^    |^\\$ )make ([a-z0-9-]+)")
)

func TestDocuments(t *testing.T) {
	t.Run("every configuration in them is valid", func(t *testing.T) {
		authority := kubetest.NewAuthority(t) // its folder contains the files that node groups name
		authority.Issue("server")
		found := 0
		for _, doc := range documents(t) {
			for _, m := range configurations.FindAllStringSubmatch(read(t, doc), -1) {
				found++
				c, err := config.Parse(doc, []byte(m[1]), filepath.Dir(authority.File))
				if err != nil {
					t.Errorf("%s: %v", doc, err)
					continue
				}
				for _, cloud := range c.Clouds {
					keys := map[string]any{"external": &external.Config{}, "local": &local.Config{}}[cloud.Driver]
					if err := cloud.Decode(keys); err != nil {
						t.Errorf("%s: %v", doc, err)
					}
				}
			}
		}
		if found == 0 {
			t.Error("found no configurations")
		}
	})
	t.Run("every link leads to an existing file and heading", func(t *testing.T) {
		clouds, err := filepath.Glob("docs/clouds/*.md")
		if err != nil || len(clouds) == 0 {
			t.Fatalf("no pages about clouds: %v", err)
		}
		for _, doc := range append(documents(t), clouds...) {
			for _, m := range links.FindAllStringSubmatch(read(t, doc), -1) {
				if strings.Contains(m[1], "://") {
					continue
				}
				file := doc
				if m[1] != "" {
					file = filepath.Join(filepath.Dir(doc), m[1])
				}
				if _, err := os.Stat(file); err != nil {
					t.Errorf("%s: %v", doc, err)
				} else if m[2] != "" && !slices.Contains(anchors(read(t, file)), m[2]) {
					t.Errorf("%s: %s has no heading #%s", doc, file, m[2])
				}
			}
		}
	})
	t.Run("every make target they name exists and has a description", func(t *testing.T) {
		makefile := read(t, "Makefile")
		for _, doc := range append(documents(t), ".ci/run") {
			for _, m := range targets.FindAllStringSubmatch(read(t, doc), -1) {
				if !regexp.MustCompile(`(?m)^` + m[1] + `:.* ## `).MatchString(makefile) {
					t.Errorf("%s names make %s, but the Makefile has no such target, or none with a description", doc, m[1])
				}
			}
		}
	})
}
