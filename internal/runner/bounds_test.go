package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"drover"
)

// reopen opens the folder's fence as the next daemon does.
func reopen(t *testing.T) *fence {
	t.Helper()
	f, err := openFence()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.file.Close() })
	return f
}

// covers D9
func TestFenceBound(t *testing.T) {
	t.Chdir(t.TempDir())
	job := func(n int64) fenced { return fenced{"n", drover.JobID{Number: n, Index: -1}} }
	f := reopen(t)
	const jobs = 2*fenceSize + 10
	for n := int64(1); n <= jobs; n++ {
		if err := f.raise("n", drover.AttemptID{Job: job(n).job, Number: 2}); err != nil {
			t.Fatal(err)
		}
	}
	for name, f := range map[string]*fence{"": f, ", even by the next daemon": reopen(t)} {
		t.Run("the newest jobs are remembered and the oldest dropped"+name, func(t *testing.T) {
			got := []int{f.highest(job(jobs)), f.highest(job(jobs - fenceSize)), f.highest(job(1))}
			if want := []int{2, 2, 0}; !cmp.Equal(got, want) {
				t.Error(cmp.Diff(want, got))
			}
		})
	}
	t.Run("a lower number that comes later changes nothing", func(t *testing.T) {
		f := reopen(t)
		high := drover.AttemptID{Job: job(jobs + 1).job, Number: 5}
		low := drover.AttemptID{Job: high.Job, Number: 3}
		if err := errors.Join(f.raise("n", high), f.raise("n", low)); err != nil || f.highest(job(jobs+1)) != 5 {
			t.Errorf("in one generation it is %d, %v", f.highest(job(jobs+1)), err)
		}
		if err := errors.Join(f.turnOver(), f.raise("n", low)); err != nil || f.highest(job(jobs+1)) != 5 {
			t.Errorf("in two it is %d, %v", f.highest(job(jobs+1)), err)
		}
		if got := reopen(t).highest(job(jobs + 1)); got != 5 {
			t.Errorf("the next daemon has %d", got)
		}
	})
	t.Run("a line cut short has no effect", func(t *testing.T) {
		if _, err := f.file.WriteString("7/12"); err != nil {
			t.Fatal(err)
		}
		if got := reopen(t).highest(job(7)); got != 0 {
			t.Errorf("got %d", got)
		}
	})
	t.Run("a line cut short does not spoil the next", func(t *testing.T) {
		if err := reopen(t).raise("n", drover.AttemptID{Job: job(8).job, Number: 3}); err != nil {
			t.Fatal(err)
		}
		if got := reopen(t).highest(job(8)); got != 3 {
			t.Errorf("got %d", got)
		}
	})
}

func TestTheFenceRotatesOnceTheDiskHasRoom(t *testing.T) {
	t.Chdir(t.TempDir())
	f := reopen(t)
	for n := range int64(fenceSize) {
		f.young[fenced{"n", drover.JobID{Number: n}}] = 1
	}
	id := drover.AttemptID{Job: drover.JobID{Number: fenceSize, Index: -1}, Number: 1}
	for _, path := range []string{fenceOld, fenceFile} { // neither can be replaced by, nor opened as, a file
		if path == fenceFile {
			if err := os.Rename(fenceFile, fenceOld); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.MkdirAll(path+"/full", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := f.raise("n", id); err == nil {
			t.Errorf("it rotated although %s was in the way", path)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.raise("n", id); err != nil || f.highest(fenced{"n", id.Job}) != 1 {
		t.Errorf("afterwards: %v", err)
	}
}

func TestHelloBound(t *testing.T) {
	for _, n := range []int{1, 200, maxAttempts} {
		t.Run(fmt.Sprintf("a Hello with %d attempts fits a message, whatever their output", n), func(t *testing.T) {
			d := &daemon{attempts: make(map[drover.AttemptID]*attempt)}
			strange := strings.Repeat("\x01", drover.TailBytes)
			for i := range n {
				a := d.newAttempt(drover.AttemptID{Job: drover.JobID{Number: 1<<62 + int64(i), Index: 1 << 40}, Number: 1 << 30})
				a.exit = &drover.Exit{Code: 255, Cause: drover.CauseNoStart, Text: limit(strange), Stdout: strange, Stderr: strange,
					StdoutLen: 1 << 62, StderrLen: 1 << 62, Started: 1 << 62, Ended: 1 << 62, CPU: 1 << 62, MaxRSS: 1 << 62}
				d.attempts[a.id] = a
			}
			text, err := json.Marshal(d.listLocked())
			if err != nil || len(text) > helloRoom {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}

func TestBlobBound(t *testing.T) {
	t.Chdir(t.TempDir())
	b, err := newBlobs()
	if err != nil {
		t.Fatal(err)
	}
	// Files with holes, so large that two are over the bound on any disk.
	add := func(digit string, age time.Duration) string {
		hash := strings.Repeat(digit, 64)
		if err := os.WriteFile(blobPath(hash), nil, 0o400); err != nil {
			t.Fatal(err)
		}
		used := time.Now().Add(-age)
		if err := os.Truncate(blobPath(hash), maxBlobs); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(blobPath(hash), used, used); err != nil {
			t.Fatal(err)
		}
		return hash
	}
	needed, fresh := add("a", 3*time.Hour), add("c", time.Minute)
	add("b", 2*time.Hour)
	add("d", -24*time.Hour) // the clock was wrong
	p, _ := b.pin([]drover.File{{Hash: needed}})
	left := func() (names []string) {
		list, _, err := listBlobs()
		if err != nil {
			t.Fatal(err)
		}
		for _, info := range list {
			names = append(names, info.Name())
		}
		return names
	}
	t.Run("eviction removes the least recently needed blob, but none that is pinned or fresh", func(t *testing.T) {
		if err := b.evict(); err != nil {
			t.Fatal(err)
		}
		if want, got := []string{needed, fresh}, left(); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	})
	t.Run("small blobs count as more than their size, so that they do not become too many", func(t *testing.T) {
		t.Chdir(t.TempDir())
		if _, err := newBlobs(); err != nil {
			t.Fatal(err)
		}
		for _, digit := range []string{"a", "b"} {
			if err := os.WriteFile(blobPath(strings.Repeat(digit, 64)), []byte("x"), 0o400); err != nil {
				t.Fatal(err)
			}
		}
		if _, sum, err := listBlobs(); err != nil || sum != 2*leastBlob {
			t.Errorf("they count as %d bytes, error %v", sum, err)
		}
	})
	t.Run("a blob that is no longer pinned goes next", func(t *testing.T) {
		b.unpin(p)
		if err := b.evict(); err != nil {
			t.Fatal(err)
		}
		if want, got := []string{fresh}, left(); !cmp.Equal(got, want) {
			t.Error(cmp.Diff(want, got))
		}
	})
}

func TestTrash(t *testing.T) {
	t.Run("a folder that its job made read-only is deleted with everything in it", func(t *testing.T) {
		t.Chdir(t.TempDir())
		bin, err := newTrash()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll("work/a/b", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod("work/a", 0o500); err != nil {
			t.Fatal(err)
		}
		if err := bin.throw("work"); err != nil {
			t.Fatal(err)
		}
		bin.empty()
		if rest, err := os.ReadDir(trashFolder); err != nil || len(rest) > 0 {
			t.Errorf("left: %v, %v", rest, err)
		}
	})
}
