package record

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drover/internal/engine"
)

// studio is a running Recorder and its log.
type studio struct {
	*Recorder
	folder Folder
	said   bytes.Buffer
	end    func()
}

func newStudio(t *testing.T, path string) *studio {
	s := &studio{folder: NewFolder(path, 1<<20)}
	s.Recorder = NewRecorder(s.folder, Header{Program: "1.0"}, slog.New(slog.NewTextHandler(&s.said, nil)))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	s.end = func() { stop(); <-done }
	return s
}

// record records the events of this many jobs.
func (s *studio) record(jobs int) {
	for _, ev := range life(jobs) {
		s.Append(ev, engine.Decision{Wake: ev.At})
	}
}

// events counts the events of each segment.
func (s *studio) events(t *testing.T) (counts []int) {
	t.Helper()
	paths, err := s.folder.Segments()
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		r, err := NewReader(bytes.NewReader(b))
		n := 0
		for ; err == nil; n++ {
			_, err = r.Next()
		}
		counts = append(counts, n-1)
	}
	return counts
}

func TestRecorder(t *testing.T) {
	t.Run("flushes every second, so that a kill loses no more", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStudio(t, t.TempDir())
			defer s.end()
			s.Begin(start())
			s.record(1)
			time.Sleep(flushEvery + time.Millisecond)
			synctest.Wait()
			equal(t, "events on disk", s.events(t), []int{5})
		})
	})

	t.Run("begins a segment with each Begin", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStudio(t, t.TempDir())
			s.Begin(start())
			s.record(1)
			s.Configured("new")
			s.Begin(start())
			s.record(2)
			s.end()
			equal(t, "events on disk", s.events(t), []int{5, 8})
			equal(t, "words", s.said.String(), "")
		})
	})

	t.Run("logs an unwritable folder once, drops what follows, and tries again later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "recording")
			if err := os.WriteFile(path, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			s := newStudio(t, path)
			s.Begin(start())
			s.record(1)
			time.Sleep(beginAgain / 2)
			synctest.Wait()
			if strings.Count(s.said.String(), "\n") != 1 || !strings.Contains(s.said.String(), path) || s.Full() {
				t.Errorf("it logs %q, full: %v", s.said.String(), s.Full())
			}
			time.Sleep(beginAgain / 2)
			if !s.Full() {
				t.Fatal("it never asks to begin again")
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			s.Begin(start())
			s.record(1)
			s.end()
			equal(t, "events on disk", s.events(t), []int{5})
		})
	})

	t.Run("ends the segment after a failed write, keeps what is complete, and tries again later", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			s := newStudio(t, t.TempDir())
			defer s.end()
			s.Begin(start())
			s.record(1)
			time.Sleep(flushEvery + time.Millisecond)
			synctest.Wait()
			s.current().file.Close()
			s.record(1)
			time.Sleep(beginAgain)
			synctest.Wait()
			if strings.Count(s.said.String(), "\n") != 1 || s.Full() {
				t.Errorf("it logs %q, full: %v", s.said.String(), s.Full())
			}
			time.Sleep(flushEvery)
			synctest.Wait()
			if !s.Full() {
				t.Error("it never asks to begin again")
			}
			equal(t, "events on disk", s.events(t), []int{5})
		})
	})
}
