package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestGaps(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{
		"one.notes": "100 110\n150 160\n120 130\n",
		"two.notes": "105 106\n108 109\n",
	} {
		if err := os.WriteFile(folder+"/"+name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notes, err := readNotes(folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("gaps are between jobs of the same instance, by time and not by the order of the notes", func(t *testing.T) {
		if diff := cmp.Diff([]time.Duration{2, 10, 20}, gaps(notes)); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("a quantile is one of the values", func(t *testing.T) {
		got := []time.Duration{quantile(gaps(notes), 1), quantile(gaps(notes), 50), quantile(gaps(notes), 99), quantile(nil, 50)}
		if diff := cmp.Diff([]time.Duration{2, 10, 20, 0}, got); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWatch(t *testing.T) {
	t.Run("the CPU time excludes the children's", func(t *testing.T) {
		const spin = "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"
		own, err := watch(exec.Command("sh", "-c", spin))
		if err != nil {
			t.Fatal(err)
		}
		children, err := watch(exec.Command("sh", "-c", `sh -c "$0"; sh -c "$0"; true`, spin))
		if err != nil {
			t.Fatal(err)
		}
		if own.cpu == 0 || own.memory == 0 || children.cpu >= own.cpu {
			t.Errorf("own %v, with children %v, memory %d", own.cpu, children.cpu, own.memory)
		}
	})
	t.Run("a failing command is an error", func(t *testing.T) {
		if _, err := watch(exec.Command("false")); err == nil {
			t.Error("no error")
		}
	})
}
