package config_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"drover/internal/config"
)

var update = flag.Bool("update", false, "write the results into the test files; read them before you commit")

// TestFiles reads each file in testdata: its comment describes what it tests, and its last part is the expected result,
// a value or faults.
// covers K6
func TestFiles(t *testing.T) {
	t.Run("batch", func(t *testing.T) {
		each(t, "testdata/batch", func() (any, error) {
			b, err := config.LoadBatch("batch.yaml")
			if err != nil {
				return nil, err
			}
			return b.Batch, nil
		})
	})
	t.Run("config", func(t *testing.T) {
		each(t, "testdata/config", func() (any, error) {
			return config.Load("drover.yaml")
		})
	})
}

// each unpacks every archive into its own folder, loads it there and compares the result.
func each(t *testing.T, dir string, load func() (any, error)) {
	paths, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no files in %s (%v)", dir, err)
	}
	for _, path := range paths {
		path, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			here := t.TempDir()
			if err := txtar.Write(archive, here); err != nil {
				t.Fatal(err)
			}
			t.Chdir(here)
			got := strings.ReplaceAll(render(t, load), here, "$WORK")
			if diff := cmp.Diff(expected(archive), got); diff != "" && !*update {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if *update {
				rewrite(t, path, archive, got)
			}
		})
	}
}

// render returns the value as JSON, or the faults.
func render(t *testing.T, load func() (any, error)) string {
	value, err := load()
	if err != nil {
		return err.Error() + "\n"
	}
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text) + "\n"
}

func expected(a *txtar.Archive) string {
	last := a.Files[len(a.Files)-1]
	if last.Name != "want" {
		return ""
	}
	return string(last.Data)
}

func rewrite(t *testing.T, path string, a *txtar.Archive, got string) {
	if last := len(a.Files) - 1; a.Files[last].Name == "want" {
		a.Files = a.Files[:last]
	}
	a.Files = append(a.Files, txtar.File{Name: "want", Data: []byte(got)})
	if err := os.WriteFile(path, txtar.Format(a), 0o644); err != nil {
		t.Fatal(err)
	}
}
