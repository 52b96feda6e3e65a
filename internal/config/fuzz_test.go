package config_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"drover"
	"drover/internal/config"
)

// seed adds the first part of every archive in dir to the corpus.
func seed(f *testing.F, dir string) {
	paths, err := filepath.Glob(dir + "/*.txtar")
	if err != nil || len(paths) == 0 {
		f.Fatalf("no files in %s (%v)", dir, err)
	}
	for _, path := range paths {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive.Files[0].Data)
	}
}

// places checks that an error is a limited list of faults, in order, each with a message and a file.
func places(t *testing.T, err error) {
	var faults config.Faults
	if !errors.As(err, &faults) || len(faults) == 0 || len(faults) > 21 {
		t.Fatalf("not a bounded list of faults: %v", err)
	}
	for i, f := range faults {
		if f.Message == "" || f.File == "" {
			t.Fatalf("an empty fault: %+v", f)
		}
		if i > 0 && f.Line > 0 && f.Line < faults[i-1].Line {
			t.Fatalf("faults out of order: %v", err)
		}
	}
}

// FuzzBatch checks that reading any bytes ends, with faults or with a batch that has the properties on which the rest
// of the program relies.
func FuzzBatch(f *testing.F) {
	seed(f, "testdata/batch")
	f.Fuzz(func(t *testing.T, data []byte) {
		b, err := config.ParseBatch("batch.yaml", data, t.TempDir())
		if err != nil {
			places(t, err)
			return
		}
		seen := map[string]bool{}
		for _, j := range b.Batch.Jobs {
			size := j.Array.Size()
			if config.CheckName(j.Name) != nil || seen[j.Name] || len(j.Command) == 0 && j.Image == "" || len(j.Command) > 0 && j.Command[0] == "" ||
				size < 1 || size > drover.MaxArray || j.Array.First < 0 || j.Resources.CPU <= 0 || j.Resources.Memory < 0 || j.Resources.Disk < 0 || j.Timeout < 0 || j.Expected < 0 || j.Timeout > 0 && j.Expected > j.Timeout {
				t.Fatalf("accepted %+v", j)
			}
			seen[j.Name] = true
		}
		for _, j := range b.Batch.Jobs {
			for _, name := range j.After {
				if _, number := strconv.Atoi(name); number != nil && !seen[name] || name == j.Name {
					t.Fatalf("%s waits for %s", j.Name, name)
				}
			}
		}
		if _, err := json.Marshal(b.Batch); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzConfig checks that reading any bytes ends, with faults or with a configuration whose hash is the same twice.
func FuzzConfig(f *testing.F) {
	seed(f, "testdata/config")
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := config.Parse("drover.yaml", data, "/etc")
		if err != nil {
			places(t, err)
			return
		}
		again, err := config.Parse("drover.yaml", data, "/etc")
		if err != nil || c.Hash() != again.Hash() {
			t.Fatalf("read twice: %s, then %s (%v)", c.Hash(), again.Hash(), err)
		}
		for _, cloud := range c.Clouds {
			if cloud.Driver == "" || cloud.ListInterval <= c.Instances.ProbeInterval || c.Instances.ProbeInterval <= c.Instances.ProbeDeadline {
				t.Fatalf("accepted %+v", c)
			}
			if err := cloud.Decode(&keys{}); err != nil {
				places(t, err)
			}
		}
	})
}

// TestFaultsAreTheSameTwice catches faults that depend on the order of a map.
func TestFaultsAreTheSameTwice(t *testing.T) {
	text := []byte("jobs: [{name: a, command: [x], env: {A-B: c, DROVER_X: d}, labels: {'!': a}, resources: {memory: 1, disk: 1}}, {name: a}]")
	_, first := config.ParseBatch("batch.yaml", text, "")
	for range 20 {
		_, next := config.ParseBatch("batch.yaml", text, "")
		if diff := cmp.Diff(first.Error(), next.Error()); diff != "" {
			t.Fatalf("(-first +next)\n%s", diff)
		}
	}
}
