package control

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// held is the operating system's resources that this process holds.
type held struct {
	goroutines int
	files      map[string]int // open files, by path or kind
	children   map[string]int // child processes, including zombies
}

func holdings(t *testing.T) held {
	t.Helper()
	h := held{goroutines: runtime.NumGoroutine(), files: map[string]int{}, children: map[string]int{}}
	for _, path := range must(filepath.Glob("/proc/self/fd/*"))(t) {
		if what, err := os.Readlink(path); err == nil {
			h.files[kindOf(what)]++
		}
	}
	for _, path := range must(filepath.Glob("/proc/self/task/*/children"))(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // the thread has ended
		}
		for _, pid := range strings.Fields(string(text)) {
			h.children[pid]++
		}
	}
	return h
}

// kindOf returns an open file's path or, without one, its kind: socket for "socket:[4711]".
func kindOf(link string) string {
	kind, _, _ := strings.Cut(link, ":[")
	return kind
}

// wantBack fails if this process holds more than before. It waits a while for resources that are being released.
func (before held) wantBack(t *testing.T) {
	t.Helper()
	var more []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if more = before.missing(holdings(t)); len(more) == 0 {
			return
		}
	}
	t.Errorf("still held: %s", strings.Join(more, ", "))
	var stacks strings.Builder
	if pprof.Lookup("goroutine").WriteTo(&stacks, 1) == nil {
		t.Log(stacks.String())
	}
}

// missing lists what is held now but was not held before.
func (before held) missing(now held) (more []string) {
	if now.goroutines > before.goroutines {
		more = append(more, fmt.Sprintf("%d goroutines", now.goroutines-before.goroutines))
	}
	for file, n := range now.files {
		if n > before.files[file] {
			more = append(more, fmt.Sprintf("%d × %s", n-before.files[file], file))
		}
	}
	for pid := range now.children {
		if before.children[pid] == 0 {
			more = append(more, "process "+pid)
		}
	}
	return more
}
