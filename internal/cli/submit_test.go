package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReceipt(t *testing.T) {
	// batchOf returns a file with a batch of n jobs.
	batchOf := func(t *testing.T, n int) string {
		t.Helper()
		text := "name: many\njobs:\n"
		for i := range n {
			text += fmt.Sprintf("  - {name: job-%d, command: [\"true\"]}\n", i)
		}
		path := filepath.Join(t.TempDir(), "many.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	(&fakeController{}).serve(t)
	t.Run("names each of a few jobs", func(t *testing.T) {
		r := droverCommand(t, "submit", batchOf(t, 7))
		if r.code != 0 || strings.Count(r.out, "job ") != 7 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("prints only the numbers of many jobs", func(t *testing.T) {
		droverCommand(t, "submit", batchOf(t, 8)).want(t, 0, "submitted batch many: 8 jobs, 17 to 24\n", "")
	})
	t.Run("is complete for programs", func(t *testing.T) {
		if r := droverCommand(t, "submit", "-o", "name", batchOf(t, 8)); strings.Count(r.out, "\n") != 8 {
			t.Errorf("%+v", r)
		}
		if r := droverCommand(t, "submit", "-o", "json", batchOf(t, 8)); strings.Count(r.out, `"id"`) != 8 {
			t.Errorf("%+v", r)
		}
	})
}
