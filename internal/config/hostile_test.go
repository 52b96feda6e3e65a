package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover/internal/config"
)

// TestHostileTexts reads texts designed to cost far more than their size suggests.
func TestHostileTexts(t *testing.T) {
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "k%d: v\n", i)
	}
	for name, c := range map[string]struct{ text, want string }{
		"more than 8 MiB":          {strings.Repeat("#", 8<<20+1), "batch.yaml: the file is larger than 8 MiB"},
		"bytes that are not text":  {"jobs: \xff", "batch.yaml: the file is not UTF-8 text"},
		"nested lists":             {strings.Repeat("[", 100_000), "batch.yaml:1:33: nested too deeply"},
		"nested lists, in block":   {strings.Repeat("- ", 100_000), "batch.yaml:1:201: nested too deeply"},
		"too many keys":            {keys.String(), "batch.yaml:2001:6: too many keys in one mapping"},
		"a merge of its own alias": {"a: &a {x: y}\nb: {<<: [*a, *b]}", "batch.yaml:2:14: the anchor &b is not defined above"},
		"a merge of a text":        {"a: {<<: b}", "batch.yaml:1:9: << needs a mapping"},
		"a complex key":            {"? a\n: b", "batch.yaml:1:1: this cannot be a key"},
	} {
		t.Run(name, func(t *testing.T) {
			began := cpuTime(t)
			_, err := config.ParseBatch("batch.yaml", []byte(c.text), "")
			if diff := cmp.Diff(c.want, text(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if took := cpuTime(t) - began; took > 10*time.Second {
				t.Errorf("reading took %v", took)
			}
		})
	}
}

func TestManyUnknownJobsAreRefusedFast(t *testing.T) {
	var jobs []string
	for i := range 10_000 {
		jobs = append(jobs, fmt.Sprintf(`{"name": "j%d", "command": ["x"], "after": [%s]}`, i, strings.Repeat(`"none", `, 14)+`"none"`))
	}
	began := cpuTime(t)
	_, err := config.ParseSubmission("body", []byte(`{"name": "b", "jobs": [`+strings.Join(jobs, ", ")+`]}`))
	if err == nil || !strings.HasSuffix(err.Error(), "and 149980 more") {
		t.Errorf("%.200v", err)
	}
	if took := cpuTime(t) - began; took > 10*time.Second {
		t.Errorf("reading took %v", took)
	}
}

func TestLoad(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if err := os.WriteFile("large.yaml", make([]byte, 9<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"none.yaml":  "opening none.yaml: no such file or directory",
		".":          "reading .: is a directory",
		"large.yaml": "large.yaml: the file is larger than 8 MiB",
	} {
		t.Run(path+" is refused", func(t *testing.T) {
			_, err := config.LoadBatch(path)
			if diff := cmp.Diff(want, text(err)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
	t.Run("a byte order mark and carriage returns are accepted, and paths are relative to the file", func(t *testing.T) {
		if err := os.Mkdir("sub", 0o700); err != nil {
			t.Fatal(err)
		}
		data := "\ufeffjobs:\r\n  - name: a\r\n    command: [x, \"y\r\n      z\"]\r\n    inputs: [{path: b.yaml}]\r\n"
		if err := os.WriteFile("sub/b.yaml", []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
		b, err := config.LoadBatch("sub/b.yaml")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := b.Batch.Jobs[0].Inputs[0].Path, filepath.Join(dir, "sub", "b.yaml"); got != want {
			t.Errorf("the input is %s, want %s", got, want)
		}
		if got := b.Batch.Jobs[0].Command[1]; got != "y z" {
			t.Errorf("the argument is %q", got)
		}
	})
}

func TestHintSaysWhereAKeyBelongs(t *testing.T) {
	for job, want := range map[string]string{
		"memory: 1Gi": "write resources: {memory: …}",
		"zone: a":     "write placement: {zone: …}",
	} {
		_, err := config.ParseBatch("batch.yaml", []byte("jobs: [{name: a, command: [true], "+job+"}]"), ".")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", job, err)
		}
	}
}

// cpuTime returns the CPU time of this process, which other work on the host does not affect.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}
