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

// held is what this process holds of the world around it.
type held struct {
	goroutines int
	files      map[string]int // open ones, by what they are
	children   map[string]int // processes, those that have ended and that nobody waited for included
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

// kindOf is a path, or what an open file without one is: "socket:[4711]" is a socket.
func kindOf(link string) string {
	kind, _, _ := strings.Cut(link, ":[")
	return kind
}

// wantBack wants no more to be held than was before. What has just ended is given a moment to be gone.
func (before held) wantBack(t *testing.T) {
	t.Helper()
	var more []string
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		if more = before.missing(holdings(t)); len(more) == 0 {
			return
		}
	}
	t.Errorf("what is left: %s", strings.Join(more, ", "))
	var stacks strings.Builder
	if pprof.Lookup("goroutine").WriteTo(&stacks, 1) == nil {
		t.Log(stacks.String())
	}
}

// missing says what now is held that was not before.
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
