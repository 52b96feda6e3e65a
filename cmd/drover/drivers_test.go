package main

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"drover/internal/config"
)

// TestPagesOfClouds checks the configurations on the pages in docs/clouds with their drivers.
func TestPagesOfClouds(t *testing.T) {
	t.Setenv("LAB_TOKEN", "x")
	blocks := regexp.MustCompile("(?ms)^```yaml\n(version: .*?)^```")
	pages, err := filepath.Glob("../../docs/clouds/*.md")
	if err != nil || len(pages) < 5 {
		t.Fatal(pages, err)
	}
	for _, page := range pages {
		name := strings.TrimSuffix(filepath.Base(page), ".md")
		t.Run(name+" shows two valid configurations, the second with every key", func(t *testing.T) {
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			found := blocks.FindAllStringSubmatch(string(text), -1)
			if len(found) != 2 {
				t.Fatalf("the page has %d configurations, want 2", len(found))
			}
			for _, block := range found {
				checkConfiguration(t, name, block[1])
			}
			for _, field := range reflect.VisibleFields(reflect.TypeOf(program().Drivers[name].Keys)) {
				key, _, _ := strings.Cut(field.Tag.Get("yaml"), ",")
				if key == "" {
					continue // an embedded struct has keys of its own
				}
				if !regexp.MustCompile(`(?m)^ {4}(# )?` + key + `:`).MatchString(found[1][1]) {
					t.Errorf("the second configuration lacks %s", key)
				}
			}
		})
	}
}

// checkConfiguration reads a configuration with one cloud of the driver.
func checkConfiguration(t *testing.T, driver, text string) {
	t.Helper()
	c, err := config.Parse(driver+".md", []byte(text), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := program().Check(c); err != nil {
		t.Error(err)
	}
	for _, cloud := range c.Clouds {
		if cloud.Driver != driver {
			t.Errorf("a cloud has the driver %s", cloud.Driver)
		}
		if err := cloud.Decode(reflect.New(reflect.TypeOf(program().Drivers[driver].Keys)).Interface()); err != nil {
			t.Error(err)
		}
	}
}
