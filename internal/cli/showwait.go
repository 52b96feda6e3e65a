package cli

import (
	"fmt"
	"io"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
)

// waitShow shows people the progress of a wait: a bar on a terminal, otherwise a line when something has changed.
type waitShow struct {
	err   io.Writer
	quiet bool

	bars  *mpb.Progress
	bar   *mpb.Bar
	words status

	last string // line
	at   time.Time
}

func (a *app) showWaiting(quiet bool) *waitShow {
	s := &waitShow{err: a.err, quiet: quiet}
	if a.terminal && !quiet {
		s.bars = mpb.New(mpb.WithOutput(a.err), mpb.WithWidth(40), mpb.WithRefreshRate(100*time.Millisecond))
		// A bar that starts with a total keeps it, and ends at the first step beyond it.
		s.bar = s.bars.New(0, barStyle(), mpb.PrependDecorators(decor.CountersNoUnit("%d/%d ")), mpb.AppendDecorators(decor.Any(s.words.get)))
	}
	return s
}

// waitLine is the shortest time between two lines in a pipe.
const waitLine = 10 * time.Second

// update shows the jobs' progress.
func (s *waitShow) update(w *waiting, words string) {
	if s.bar != nil {
		counts, total := w.counts()
		s.words.set(" " + words)
		s.bar.SetTotal(int64(total), false)
		s.bar.SetCurrent(int64(finals(counts)))
		return
	}
	if s.quiet || words == s.last || time.Since(s.at) < waitLine {
		return
	}
	s.last, s.at = words, time.Now()
	fmt.Fprintln(s.err, words)
}

// Write prints text: above the bar while there is one.
func (s *waitShow) Write(p []byte) (int, error) {
	if s.bar != nil {
		return s.bars.Write(p)
	}
	return s.err.Write(p)
}

// close removes the bar. Closing it again does nothing.
func (s *waitShow) close() {
	if s.bar != nil {
		s.bar.Abort(true)
		s.bars.Wait()
		s.bar = nil
		s.quiet = true
	}
}
